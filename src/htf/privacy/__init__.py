"""What is promised, spent and said: epsilon, units, the ledger, the budget file, the statement."""
