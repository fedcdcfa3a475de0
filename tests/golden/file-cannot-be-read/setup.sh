ln -s loop.toml loop.toml
