"""The former name of `drawdown.launch`, for jobs/ of projects that `drawdown init` made before."""
