"""An HTTP API over releases. Public: it holds releases only, and nothing here can reach data."""
