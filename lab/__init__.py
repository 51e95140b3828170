"""The local laboratory: a real Kubernetes node, real brokers and a real PostgreSQL on one Debian machine, no Docker."""
