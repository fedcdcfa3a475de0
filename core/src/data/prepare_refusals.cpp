// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <system_error>

#include "data/prepare.hpp"
#include "data/token_writer.hpp"
#include "data/tokenizer_choice.hpp"

namespace triax::data {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> outputs(const PrepareRequest& request) {
  std::vector<fs::path> out;
  const auto add = [&out](const fs::path& prefix) {
    for (const fs::path& file : dataset_files(prefix)) out.insert(out.end(), {file, partial(file)});
  };
  add(request.output);
  if (request.validation_fraction > 0) add(beside(request.output, "-validation"));
  return out;
}

void check_outputs(const PrepareRequest& request, Refusals& out) {
  const fs::path& prefix = request.output;
  const std::string ending = prefix.extension().string();
  if (!prefix.has_filename()) {
    out.add(make_refusal(ErrorCode::kInvalidValue, {"--output"}, "--output must be a prefix, got the folder {}", prefix)
                .with_hint("for example --output {}", prefix / "corpus"));
    return;
  }
  if (ending == ".bin" || ending == ".idx" || ending == ".json") {
    out.add(make_refusal(ErrorCode::kInvalidValue, {"--output"},
                         "--output must be a prefix, to which .bin, .idx and .json are added, got {}", prefix)
                .with_hint("use --output {}", prefix.parent_path() / prefix.stem()));
    return;
  }
  check_output_folder(prefix, out);
  for (const fs::path& file : outputs(request)) check_output_file(file, request.inputs, request.force, out);
}

void check_tokenizer(const PrepareRequest& request, Refusals& out) {
  try {
    end_of_document(request, *open_tokenizer(request.tokenizer));
  } catch (const Error& error) {
    const std::string shown = Error(error.message(), error.where()).what();
    const bool is_of_flag = error.where().empty() || error.where().starts_with("--"); // otherwise of a file
    const std::string flag = shown.starts_with("--") ? shown.substr(0, shown.find_first_of(" :")) : "--tokenizer";
    out.add(make_refusal(is_of_flag ? ErrorCode::kInvalidValue : ErrorCode::kNotReadable, {flag}, "{}", shown)
                .with_hint("{}", error.hint()));
  }
}

} // namespace

Refusals refusals(const PrepareRequest& request) {
  Refusals out;
  check_tokenizer(request, out);
  if (request.separator) check_separator(*request.separator, out);
  if (!(request.validation_fraction >= 0 && request.validation_fraction < 1)) {
    out.add(make_refusal(ErrorCode::kOutOfRange, {"--validation-fraction"},
                         "--validation-fraction must be in [0, 1), got {}", request.validation_fraction)
                .with_hint("use for example 0.05, which puts every twentieth document into the validation dataset"));
  }
  check_threads(request.threads, out);
  check_inputs(request.inputs, out);
  check_outputs(request, out);
  return out;
}

} // namespace triax::data
