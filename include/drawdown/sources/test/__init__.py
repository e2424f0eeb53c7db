"""Sources for tests, which no schedule may use: socket, rate, rate-micro-batch."""
