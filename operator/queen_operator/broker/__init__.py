"""The only room that talks to brokers and spool keepers (HTTP) and to PostgreSQL; every call has a time limit."""
