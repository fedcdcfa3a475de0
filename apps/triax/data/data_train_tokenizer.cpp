// SPDX-License-Identifier: Apache-2.0
// triax data train-tokenizer: trains a tokenizer.json on text files.
#include <memory>
#include <ostream>
#include <string>

#include "common/list_option.hpp"
#include "common/printable_line.hpp"
#include "common/result_out.hpp"
#include "data/data_progress.hpp"
#include "data/data_verbs.hpp"
#include "data/train_tokenizer.hpp"
#include "os/cpu_quota.hpp"
#include "report/json.hpp"
#include "report/units.hpp"

namespace triax::app {

namespace {

struct TrainTokenizerFlags {
  data::TrainTokenizerRequest request;
  std::string separator;
  bool json = false;
};

void print(const data::TrainedTokenizer& made, const TrainTokenizerFlags& flags) {
  const data::TrainTokenizerRequest& request = flags.request;
  if (!flags.json) {
    const std::string fewer = made.tokens < request.vocab
                                  ? text(", not {}: no other pair occurs {} times", request.vocab, request.min_count)
                                  : std::string();
    result_out() << text("{}: {} tokens{}, {} merges, from {} different words of {}\n",
                         printable_line(request.output.string()), made.tokens, fewer, made.merges, made.words,
                         report::bytes_text(made.bytes));
    return;
  }
  report::JsonObject out;
  out.set("tokenizer", request.output.string()).set("tokens", made.tokens).set("merges", made.merges);
  out.set("words", made.words).set("bytes", made.bytes);
  result_out() << out.line() << '\n';
}

int run_train_tokenizer(const TrainTokenizerFlags& flags) {
  data::TrainedTokenizer made;
  const int status = run_data_verb(data::refusals(flags.request), flags.json, [&](const auto& stop_if_signaled) {
    DataProgress shown("train-tokenizer");
    const auto reading = [&](std::uint64_t done, std::uint64_t total) {
      stop_if_signaled();
      shown.read(done, total);
    };
    const auto merging = [&](std::int64_t tokens, std::int64_t vocab) {
      stop_if_signaled();
      shown.made(tokens, vocab);
    };
    made = data::train_tokenizer(flags.request, {reading, merging});
  });
  if (status == 0) print(made, flags);
  return status;
}

} // namespace

void add_data_train_tokenizer(CLI::App& data, int& status) {
  CLI::App* verb =
      data.add_subcommand("train-tokenizer", "trains a tokenizer.json on text files (byte-level BPE, as GPT-2's)");
  auto flags = std::make_shared<TrainTokenizerFlags>();
  data::TrainTokenizerRequest& request = flags->request;
  request.threads = os::available_cores();
  with_several_values(
      verb->add_option("--input", request.inputs, "text files; each is one document")->type_name("FILE")->required());
  verb->add_option("--vocab", request.vocab, "number of tokens, with the 256 bytes and the special tokens")
      ->type_name("N")
      ->required();
  verb->add_option("--output", request.output, "file to write, in the format of Hugging Face's tokenizers")
      ->type_name("FILE")
      ->required();
  CLI::Option* separator = verb->add_option("--separator", flags->separator,
                                            "a line with exactly this text ends a document, and is not part of it");
  separator->type_name("LINE");
  with_several_values(verb->add_option("--special-token", request.special_tokens,
                                       text("special tokens, which do not stand for text [{}]; they get the first ids",
                                            data::kEndOfText))
                          ->type_name("TOKEN"));
  verb->add_option("--min-count", request.min_count, "a pair that occurs less often does not become a token [2]")
      ->type_name("N");
  verb->add_option("--threads", request.threads,
                   "number of counting threads [all cores]; the result does not depend on it")
      ->type_name("N");
  verb->add_flag("--force", request.force, "replaces an existing file");
  verb->add_flag("--json", flags->json, "prints the result as one JSON object");
  verb->callback([flags, separator, &status] {
    if (separator->count() > 0) flags->request.separator = flags->separator;
    status = run_train_tokenizer(*flags);
  });
}

} // namespace triax::app
