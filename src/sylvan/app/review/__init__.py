"""The review page: people decide about single cells in a browser, and see what that says of all others."""
