// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <system_error>

#include "data/prepare.hpp"
#include "data/token_writer.hpp"
#include "data/tokenizer.hpp"

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

void check_outputs(const PrepareRequest& request, std::vector<Support>& out) {
  const fs::path& prefix = request.output;
  const std::string ending = prefix.extension().string();
  if (!prefix.has_filename()) {
    out.push_back(Support::no("--output {}: names a folder; a prefix is needed", prefix)
                      .hint("for example --output {}", prefix / "corpus"));
    return;
  }
  if (ending == ".bin" || ending == ".idx" || ending == ".json") {
    out.push_back(Support::no("--output {}: is a prefix, to which .bin, .idx and .json are added", prefix)
                      .hint("use --output {}", prefix.parent_path() / prefix.stem()));
    return;
  }
  check_output_folder(prefix, out);
  for (const fs::path& file : outputs(request)) check_output_file(file, request.inputs, request.force, out);
}

void check_tokenizer(const PrepareRequest& request, std::vector<Support>& out) {
  try {
    end_of_document(request, *open_tokenizer(request.tokenizer));
  } catch (const Error& error) {
    out.push_back(Support::no("{}: {}", error.where(), error.message()).hint("{}", error.hint()));
  }
}

} // namespace

std::vector<Support> refusals(const PrepareRequest& request) {
  std::vector<Support> out;
  check_tokenizer(request, out);
  if (request.separator) check_separator(*request.separator, out);
  if (!(request.validation_fraction >= 0 && request.validation_fraction < 1)) {
    out.push_back(
        Support::no("--validation-fraction {}: is no share: at least 0, and less than 1", request.validation_fraction)
            .hint("0.05 puts every twentieth document aside"));
  }
  check_threads(request.threads, out);
  check_inputs(request.inputs, out);
  check_outputs(request, out);
  return out;
}

} // namespace triax::data
