"""The only room that talks to Kubernetes: watch, read, server-side apply, delete, status, events, Lease."""
