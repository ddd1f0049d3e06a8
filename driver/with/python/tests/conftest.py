"""The plugin's tests run pytest on small projects."""

pytest_plugins = ["pytester"]
