# SPDX-License-Identifier: Apache-2.0

# triax generate: the tokenizer of an imported model

  $ . "$TESTDIR/setup"
  $ reference=$SOURCE/tests/hf/reference
  $ tokens() { python3 -c 'import json, sys; of = json.load(sys.stdin)
  > print(*([of["prompt_tokens"]] if sys.argv[1] == "prompt" else [[s["tokens"], s["reason"]] for s in of["samples"]]))' "$1"; }
  $ mkdir temporary
  $ import() { TMPDIR=$PWD/temporary triax generate "$@"; }

  $ cp -r $reference/gpt2-odd model; chmod -R u+w model; cp $reference/byte_pairs.json model/tokenizer.json
  $ generated() {
  >   import model --prompt "${1-the ab}" --max-tokens 5 --json "${@:2}" 2> log > out && return
  >   local status=$?; sed "s|$PWD|{folder}|" log; return $status
  > }
  $ generated && tokens prompt < out && tokens samples < out
  [260, 258]
  [[59, 59, 26, 185, 37], 'length']

It is there after an import, too, and so are vocab.json and merges.txt of a GPT-2 without tokenizer.json:

  $ triax import hf model --output imported --run imported.toml > /dev/null
  $ triax generate imported --prompt "the ab" --max-tokens 5 --json 2> /dev/null | tokens prompt
  [260, 258]
  $ python3 - << 'END'
  > import json
  > model = json.load(open("model/tokenizer.json"))["model"]
  > json.dump(model["vocab"], open("model/vocab.json", "w"))
  > pairs = (pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"])
  > open("model/merges.txt", "w").write("#version: 0.2\n" + "".join(pair + "\n" for pair in pairs))
  > END
  $ rm model/tokenizer.json; generated && tokens prompt < out
  [260, 258]
  $ sed -i '/"model_type"/d' model/config.json; generated && tokens prompt < out
  [260, 258]
  $ generated "the ab" --tokenizer gpt2 --vocab model/vocab.json --merges model/merges.txt && tokens prompt < out
  [260, 258]

Other models split text by other patterns, which are not in these files:

  $ cp -r $reference/llama-scaled other; chmod -R u+w other; mv model/vocab.json model/merges.txt other
  $ import other --prompt "the ab"
  no tokenizer found: {folder}/other has neither tokenizer.json nor GPT-2's vocab.json and merges.txt
    name the model's tokenizer.json: --tokenizer FILE
  [2]
  $ cp $reference/byte_pairs.json model/tokenizer.json

  $ generated $'the \xff'
  the prompt cannot be encoded: byte 4 of the text is not UTF-8
    convert it to UTF-8, for example with iconv
  [2]

The model's end token ends a text, and is an empty prompt. It may be several:

  $ end() { printf '{"eos_token_id": %s}' "$1" > model/generation_config.json; }
  $ end 26; generated && tokens samples < out
  [[59, 59], 'end_of_document']
  $ generated "" && tokens prompt < out
  [26]
  $ end "[26, 5]"; generated "" && tokens prompt < out
  [26]
  $ generated "" --tokenizer byte && tokens prompt < out
  [26]

As for transformers, that of config.json counts if generation_config.json does not exist. Without any, it is that of the
tokenizer:

  $ rm model/generation_config.json; sed -i 's/"eos_token_id": 0/"eos_token_id": 7/' model/config.json
  $ generated "" && tokens prompt < out
  [7]
  $ end null; generated "" && tokens prompt < out
  [0]

It must be in the vocabulary:

  $ for id in '"x"' -3 261 4294967338 99999999999999999999 1.5 '[42, 900]' true; do end "$id"; generated | head -1; done
  {folder}/model/generation_config.json: eos_token_id must be a token id in [0, 260], or a list of them, got "x"
  {folder}/model/generation_config.json: eos_token_id must be a token id in [0, 260], or a list of them, got -3
  {folder}/model/generation_config.json: eos_token_id must be a token id in [0, 260], or a list of them, got 261
  {folder}/model/generation_config.json: eos_token_id must be a token id in [0, 260], or a list of them, got 4294967338
  {folder}/model/generation_config.json: eos_token_id must be a token id in [0, 260], or a list of them, got 1e+20
  {folder}/model/generation_config.json: eos_token_id must be a token id in [0, 260], or a list of them, got 1.5
  {folder}/model/generation_config.json: eos_token_id must be a token id in [0, 260], or a list of them, got 900
  {folder}/model/generation_config.json: eos_token_id must be a token id in [0, 260], or a list of them, got true
  $ generated ""
  {folder}/model/generation_config.json: eos_token_id must be a token id in [0, 260], or a list of them, got true
    write the id of the token that ends a text, or null
  [2]
  $ triax import hf model --output wrong --run wrong.toml > /dev/null; triax generate wrong --prompt "the ab"
  {folder}/wrong/hf/generation_config.json: eos_token_id must be a token id in [0, 260], or a list of them, got true
    write the id of the token that ends a text, or null
  [2]
  $ echo '[' > model/generation_config.json; generated
  {folder}/model/generation_config.json: is not valid JSON: unexpected end of file at byte 3
    restore it from the imported model
  [2]
  $ find temporary
  temporary
