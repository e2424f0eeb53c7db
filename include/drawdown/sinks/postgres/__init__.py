"""PostgreSQL as a sink: rows are staged as files, and copied in one transaction with the ledger's row."""
