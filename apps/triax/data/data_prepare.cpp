// SPDX-License-Identifier: Apache-2.0
// triax data prepare: converts text files to token files.
#include <iostream>
#include <memory>
#include <string>

#include "common/list_option.hpp"
#include "common/printable_line.hpp"
#include "common/result_out.hpp"
#include "data/data_progress.hpp"
#include "data/data_verbs.hpp"
#include "data/prepare.hpp"
#include "data/tokenizer_choice.hpp"
#include "os/cpu_quota.hpp"
#include "report/json.hpp"
#include "report/units.hpp"

namespace triax::app {

namespace {

struct PrepareFlags {
  data::PrepareRequest request;
  std::string separator;
  bool json = false;
};

void print_part(const data::PreparedPart& part) {
  std::string files = part.files.front().string();
  for (std::size_t i = 1; i < part.files.size(); ++i) // endings after the prefix
    files += " " + part.files[i].string().substr(part.prefix.string().size());
  result_out() << text("{}: {} document{}, {} tokens, {}\n", printable_line(files), part.documents,
                       part.documents == 1 ? "" : "s", part.tokens, report::bytes_text(part.bytes));
}

report::JsonObject json_of(const data::PreparedPart& part) {
  report::JsonObject out;
  out.set("prefix", part.prefix.string()).set("documents", part.documents).set("tokens", part.tokens);
  std::vector<std::string> files;
  files.reserve(part.files.size());
  for (const std::filesystem::path& file : part.files) files.push_back(file.string());
  out.set("bytes", part.bytes).set("files", files);
  return out;
}

void print(const data::Prepared& made, const PrepareFlags& flags) {
  if (!flags.json) {
    print_part(made.train);
    if (made.validation) print_part(*made.validation);
    return;
  }
  report::JsonObject out;
  out.set("tokenizer", flags.request.tokenizer.name).set("vocab", made.vocab).set("train", json_of(made.train));
  if (made.validation) out.set("validation", json_of(*made.validation));
  result_out() << out.line() << '\n';
}

/// Documents that an earlier run put into the validation set may now be in the training set.
void note_older_validation(const data::PrepareRequest& request) {
  std::error_code unreadable;
  const std::filesystem::path older = data::beside(request.output, "-validation.bin");
  if (request.validation_fraction > 0 || !std::filesystem::exists(older, unreadable)) return;
  std::cerr << text("note: {} existed before and was not changed; the new files may contain its documents too\n",
                    printable_line(older.string()));
}

int run_prepare(const PrepareFlags& flags) {
  data::Prepared made;
  const int status = run_data_verb(data::refusals(flags.request), flags.json, [&](const auto& stop_if_signaled) {
    DataProgress shown("prepare");
    made = data::prepare(flags.request, [&](std::uint64_t done, std::uint64_t total) {
      stop_if_signaled();
      shown.read(done, total);
    });
  });
  if (status == 0) {
    print(made, flags);
    note_older_validation(flags.request);
  }
  return status;
}

void add_tokenizer_flags(CLI::App& prepare, data::PrepareRequest& request) {
  prepare
      .add_option("--tokenizer", request.tokenizer.name,
                  "byte: each byte is a token, and one more token ends a document; gpt2: the two files of --vocab and "
                  "--merges; or a tokenizer.json of byte-level BPE")
      ->type_name("byte|gpt2|FILE")
      ->required();
  prepare.add_option("--vocab", request.tokenizer.vocab, "vocab.json of --tokenizer gpt2")->type_name("FILE");
  prepare.add_option("--merges", request.tokenizer.merges, "merges.txt of --tokenizer gpt2")->type_name("FILE");
  prepare.add_flag("--append-eod", request.append_eod,
                   "ends each document with a token, as Megatron's flag of the same name; byte always does");
  prepare
      .add_option("--eod-token", request.eod_token,
                  text("the added token that --append-eod appends [{}]", data::kEndOfText))
      ->type_name("TOKEN")
      ->needs(prepare.get_option("--append-eod"));
}

} // namespace

void add_data_prepare(CLI::App& data, int& status) {
  CLI::App* prepare = data.add_subcommand("prepare", "converts text files to token files (Megatron's indexed dataset)");
  auto flags = std::make_shared<PrepareFlags>();
  data::PrepareRequest& request = flags->request;
  request.threads = os::available_cores();
  with_several_values(prepare->add_option("--input", request.inputs, "text files, in this order; each is one document")
                          ->type_name("FILE")
                          ->required());
  prepare->add_option("--output", request.output, "prefix of the files to write; a missing folder is created")
      ->type_name("PREFIX")
      ->required();
  add_tokenizer_flags(*prepare, request);
  CLI::Option* separator = prepare->add_option("--separator", flags->separator,
                                               "a line with exactly this text ends a document, and is not part of it");
  separator->type_name("LINE");
  prepare
      ->add_option("--validation-fraction", request.validation_fraction,
                   "fraction of the documents, evenly spaced, that goes to PREFIX-validation")
      ->type_name("F");
  prepare
      ->add_option("--threads", request.threads,
                   "number of encoder threads [all cores]; the output does not depend on it")
      ->type_name("N");
  prepare->add_flag("--force", request.force, "replaces existing files");
  prepare->add_flag("--json", flags->json, "prints the result as one JSON object");
  prepare->callback([flags, separator, &status] {
    if (separator->count() > 0) flags->request.separator = flags->separator;
    status = run_prepare(*flags);
  });
}

} // namespace triax::app
