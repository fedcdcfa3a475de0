for ending in bin idx; do cp ../text.$ending mine.$ending; done
echo '{"tokenizer": "byte", "vocab": 257' > mine.json
