#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "data/prepare.hpp"
#include "data/token_writer.hpp"
#include "data/tokenizer.hpp"

namespace triax::data {

namespace {

namespace fs = std::filesystem;

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code failure;
  return fs::equivalent(a, b, failure) && !failure;
}

std::vector<fs::path> outputs(const PrepareRequest& request) {
  std::vector<fs::path> out;
  const auto add = [&out](const fs::path& prefix) {
    for (const fs::path& file : dataset_files(prefix)) out.insert(out.end(), {file, partial(file)});
  };
  add(request.output);
  if (request.validation_fraction > 0) add(beside(request.output, "-validation"));
  return out;
}

const char* kind_text(fs::file_type type) {
  switch (type) {
    case fs::file_type::fifo:
      return "a pipe";
    case fs::file_type::socket:
      return "a socket";
    default:
      return "a device";
  }
}

void check_input(const PrepareRequest& request, std::size_t index, std::vector<Support>& out) {
  const fs::path& input = request.inputs[index];
  std::error_code failure;
  const fs::file_status status = fs::status(input, failure);
  if (!fs::exists(status)) {
    out.push_back(Support::no("{}: there is no such input", input));
  } else if (fs::is_directory(status)) {
    out.push_back(
        Support::no("{}: is a folder; an input is a text file", input).hint("name its files: --input {}", input / "*"));
  } else if (!fs::is_regular_file(status)) {
    out.push_back(Support::no("{}: is {}; an input is a text file", input, kind_text(status.type()))
                      .hint("write what it gives into a file first"));
  } else if (::access(input.c_str(), R_OK) != 0) {
    out.push_back(Support::no("{}: cannot be read: {}", input, std::generic_category().message(errno)));
  } else if (fs::file_size(input, failure) == 0 && !failure) {
    out.push_back(Support::no("{}: is empty", input));
  }
  for (std::size_t other = 0; other < index; ++other) {
    if (!fs::exists(status) || !same_file(request.inputs[other], input)) continue;
    out.push_back(Support::no("{}: is given twice{}", input,
                              request.inputs[other] == input ? "" : ", also as " + request.inputs[other].string()));
    break;
  }
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
  for (const fs::path& file : outputs(request)) {
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(file, ignored))) continue;
    for (const fs::path& input : request.inputs) {
      if (same_file(file, input)) out.push_back(Support::no("{}: is an input and would be overwritten", input));
    }
    if (fs::is_directory(file, ignored)) {
      out.push_back(Support::no("{}: is a folder, where a file is to be written", file));
    } else if (!request.force) {
      const bool left_over = file.extension() == ".partial";
      out.push_back(Support::no(left_over ? "{}: is there: left by a run that was stopped, or being written by another"
                                          : "{}: is there already",
                                file)
                        .hint("add --force to replace it"));
    }
  }
}

} // namespace

std::vector<Support> refusals(const PrepareRequest& request) {
  std::vector<Support> out;
  const std::vector<std::string> known = known_tokenizers();
  if (std::find(known.begin(), known.end(), request.tokenizer) == known.end()) {
    out.push_back(Support::no("--tokenizer {}: is unknown", request.tokenizer).hint("known: {}", joined(known)));
  }
  if (request.separator &&
      (request.separator->empty() || request.separator->find_first_of("\r\n") != std::string::npos)) {
    out.push_back(Support::no("--separator: is a whole line, so it has text and no line break"));
  }
  if (!(request.validation_fraction >= 0 && request.validation_fraction < 1)) {
    out.push_back(Support::no("--validation-fraction {}: lies outside 0 to 1", request.validation_fraction)
                      .hint("0.05 puts every twentieth document aside"));
  }
  if (request.inputs.empty()) out.push_back(Support::no("--input: names no file"));
  for (std::size_t i = 0; i < request.inputs.size(); ++i) check_input(request, i, out);
  check_outputs(request, out);
  return out;
}

} // namespace triax::data
