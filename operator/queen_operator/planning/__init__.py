"""Pure decisions: what is wanted and what is observed in, one action and the status out."""
