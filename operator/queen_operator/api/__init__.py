"""The contract with the user: the QueenCluster resource, its rules, and the CRD generated from them."""
