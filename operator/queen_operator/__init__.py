"""Kubernetes operator for Queen 1.x, the PostgreSQL-backed message broker."""

__version__ = "0.1.0"
