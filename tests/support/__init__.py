"""What tests of every kind share: waiting, a namespace of one's own, explanations of a failure."""
