"""Producers and consumers at the same time, with a ledger of every message: a program for a node's network."""
