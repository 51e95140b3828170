"""The loop: kopf wakes one worker per cluster; each round observes, plans, acts once and writes the status."""
