# SPDX-License-Identifier: Apache-2.0

# triax data prepare and triax data train-tokenizer

  $ printf 'one\n%%\ntwo\n%%\nthree\n%%\nfour\n' > text
  $ prepare="triax data prepare --input text --tokenizer byte"

A file is a document:

  $ $prepare --output made/plain
  made/plain.bin .idx .json: 1 document, 26 tokens, 52 B
  $ ls made
  plain.bin
  plain.idx
  plain.json

With `--json`, the result is one object; a separator divides a file into documents, and a fraction of them validates:

  $ $prepare --output made/parts --separator % --validation-fraction 0.25 --json 2> /dev/null
  {"tokenizer":"byte","vocab":257,"train":{"prefix":"made/parts","documents":3,"tokens":17,"bytes":34,"files":["made/parts.bin","made/parts.idx","made/parts.json"]},"validation":{"prefix":"made/parts-validation","documents":1,"tokens":6,"bytes":12,"files":["made/parts-validation.bin","made/parts-validation.idx","made/parts-validation.json"]}}

A validation file of an earlier run is kept and reported:

  $ $prepare --output made/parts --separator % --force > /dev/null
  note: made/parts-validation.bin existed before and was not changed; the new files may contain its documents too

Without --force, files are not replaced:

  $ $prepare --output made/plain
  made/plain.bin: already exists
    add --force to replace it
  made/plain.json: already exists
    add --force to replace it
  made/plain.idx: already exists
    add --force to replace it
  [2]
  $ $prepare --output made/plain --force
  made/plain.bin .idx .json: 1 document, 26 tokens, 52 B

## Refusals and failures

All errors are reported together, and nothing is written:

  $ triax data prepare --input text missing text --output made/no --tokenizer bpe
  --tokenizer must be byte, gpt2 or the path of a tokenizer.json, got bpe
  --input missing: does not exist
    correct the path
  --input lists text twice
  [2]
  $ triax data prepare --output made/no --tokenizer byte
  triax: --input is required
    see: triax data prepare --help
  [2]

No document is left for validation:

  $ $prepare --output made/no --validation-fraction 0.1
  --validation-fraction 0.1 of 1 document leaves the training or the validation dataset empty
    use another fraction, or cut the text into documents with --separator
  [1]

With `--json`, errors are one object on stdout:

  $ triax data prepare --input text missing --output made/no --tokenizer bpe --json 2> /dev/null
  {"errors":[{"code":"invalid-value","keys":["--tokenizer"],"file":null,"line":null,"column":null,"message":"--tokenizer must be byte, gpt2 or the path of a tokenizer.json, got bpe","hint":""},{"code":"not-found","keys":["--input"],"file":null,"line":null,"column":null,"message":"--input missing: does not exist","hint":"correct the path"}]}
  [2]
  $ $prepare --output made/no --validation-fraction 0.1 --json 2> /dev/null
  {"problem":"--validation-fraction 0.1 of 1 document leaves the training or the validation dataset empty\n  use another fraction, or cut the text into documents with --separator"}
  [1]
  $ $prepare --output made/no --json --nonsense 2> /dev/null
  {"errors":[{"code":"unknown-key","keys":["--nonsense"],"file":null,"line":null,"column":null,"message":"unexpected argument: --nonsense","hint":"see: triax data prepare --help"}]}
  [2]
  $ ls made | grep no
  [1]

## Tokenizers

  $ triax data train-tokenizer --input text --vocab 259 --min-count 1 --output made/t.json
  made/t.json: 259 tokens, 2 merges, from 6 different words of 25 B
  $ triax data train-tokenizer --input text --vocab 10 --output made/t.json
  --vocab must be in [257, 16777216], got 10
    256 bytes and 1 special tokens are in every vocabulary
  made/t.json: already exists
    add --force to replace it
  [2]

Brackets and commas are part of a value:

  $ triax data train-tokenizer --input text --vocab 261 --min-count 1 --output made/b.json --special-token '[PAD]' '[a,b]' --special-token=[C]
  made/b.json: 261 tokens, 2 merges, from 6 different words of 25 B
  $ tr -d ' \n' < made/b.json | grep -oE '"content":"\[[^"]*"'
  "content":"[PAD]"
  "content":"[a,b]"
  "content":"[C]"
  $ cp text '[text]'
  $ triax data prepare --input '[text]' --output made/brackets --tokenizer byte
  made/brackets.bin .idx .json: 1 document, 26 tokens, 52 B

A tokenizer is copied to the data:

  $ triax data prepare --input text --output made/words --tokenizer made/t.json --append-eod --threads 2
  made/words.bin .idx .json -tokenizer.json: 1 document, 24 tokens, 48 B
  $ cmp made/t.json made/words-tokenizer.json

Text has to be UTF-8:

  $ printf 'bad \377 byte\n' > bad
  $ triax data prepare --input text bad --output made/no --tokenizer made/t.json
  bad: byte 4 is not UTF-8
    convert it to UTF-8, for example with iconv; or use --tokenizer byte, which accepts any bytes
  [1]
  $ ls made | grep no
  [1]

An end token that the tokenizer does not have:

  $ triax data prepare --input text --output made/no --tokenizer made/t.json --append-eod --eod-token '<end>'
  --append-eod: the tokenizer has no added token "<end>"
    name one with --eod-token: <|endoftext|>
  [2]
