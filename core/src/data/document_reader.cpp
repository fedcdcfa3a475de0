// SPDX-License-Identifier: Apache-2.0
#include "data/document_reader.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "data/tokenizer/utf8.hpp"
#include "os/errno_text.hpp"
#include "os/folder_access.hpp"
#include "os/input_file.hpp"

namespace triax::data {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadBytes = 1 << 16; // bytes read at a time
constexpr int kMaxThreads = 1024;

using FileId = std::pair<dev_t, ino_t>;
/// Empty if the file does not exist.
std::optional<FileId> id_of(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
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

void check_input(const fs::path& input, Refusals& out) {
  std::error_code failure;
  const fs::file_status status = fs::status(input, failure);
  if (!fs::exists(status)) {
    out.add(make_refusal(ErrorCode::kNotFound, {"--input"}, "--input {}: does not exist", input)
                .with_hint("correct the path"));
  } else if (fs::is_directory(status)) {
    out.add(
        make_refusal(ErrorCode::kNotReadable, {"--input"}, "--input {}: is a folder; an input is a text file", input)
            .with_hint("name its files: --input {}", input / "*"));
  } else if (!fs::is_regular_file(status)) {
    out.add(make_refusal(ErrorCode::kNotReadable, {"--input"}, "--input {}: is {}; an input is a text file", input,
                         kind_text(status.type()))
                .with_hint("write its output to a file first"));
  } else if (::access(input.c_str(), R_OK) != 0) {
    out.add(make_refusal(ErrorCode::kNotReadable, {"--input"}, "--input {}: cannot be read: {}", input, errno_text()));
  } else if (fs::file_size(input, failure) == 0 && !failure) {
    out.add(make_refusal(ErrorCode::kMissing, {"--input"}, "--input {}: is empty", input));
  }
}

std::uint64_t size_of(const std::vector<fs::path>& inputs) {
  std::uint64_t total = 0;
  for (const fs::path& input : inputs) {
    std::error_code failure; // opening the file reports the error
    const std::uint64_t bytes = fs::file_size(input, failure);
    if (!failure) total += bytes;
  }
  return total;
}

/// Passes on one input, and checks that it is UTF-8 if required.
void read_input(const fs::path& file, bool any_bytes, DocumentSplitter& splitter, JobFiller& filler,
                const std::function<void(std::size_t)>& read) {
  const os::InputFile input(file);
  std::vector<char> piece(kReadBytes);
  Utf8Check check;
  const auto refuse = [&] {
    throw Error(text("byte {} is not UTF-8", check.bad_at()), file.string(),
                "convert it to UTF-8, for example with iconv; or use --tokenizer byte, which accepts any bytes");
  };
  std::uint64_t offset = 0;
  while (const std::size_t got = input.read_some(offset, std::as_writable_bytes(std::span(piece)))) {
    const std::string_view bytes(piece.data(), got);
    if (!any_bytes && !check.feed(bytes)) refuse();
    offset += got;
    filler.set_source(file, offset);
    splitter.feed(bytes);
    read(got);
  }
  if (offset < input.bytes()) {
    throw Error(text("was truncated while it was read: {} of its {} bytes were left", offset, input.bytes()),
                file.string(), "start again when no other program writes to it");
  }
  if (!any_bytes && !check.finish()) refuse();
  splitter.end_input();
}

} // namespace

void check_inputs(const std::vector<fs::path>& inputs, Refusals& out) {
  if (inputs.empty()) out.add(make_refusal(ErrorCode::kMissing, {"--input"}, "--input names no file"));
  std::map<FileId, const fs::path*> known;
  for (const fs::path& input : inputs) {
    check_input(input, out);
    const std::optional<FileId> id = id_of(input);
    if (!id) continue;
    const auto [first, is_new] = known.emplace(*id, &input);
    if (is_new) continue;
    out.add(make_refusal(ErrorCode::kDuplicate, {"--input"}, "--input lists {} twice{}", input,
                         *first->second == input ? "" : ", also as " + first->second->string()));
  }
}

void check_output_folder(const fs::path& file, Refusals& out) {
  const std::string problem = os::why_not_writable(fs::absolute(file).parent_path());
  if (problem.empty()) return;
  out.add(make_refusal(ErrorCode::kNotWritable, {"--output"}, "--output {}: cannot be written: {}", file, problem)
              .with_hint("choose another folder"));
}

void check_output_file(const fs::path& file, const std::vector<fs::path>& inputs, bool force, Refusals& out) {
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(file, ignored);
  if (!fs::exists(status)) return;
  const std::optional<FileId> id = id_of(file);
  for (const fs::path& input : inputs) {
    if (id && id == id_of(input))
      out.add(make_refusal(ErrorCode::kAlreadyExists, {"--output", "--input"},
                           "{}: is an input and would be overwritten", input));
  }
  if (fs::is_directory(file, ignored)) {
    out.add(make_refusal(ErrorCode::kNotWritable, {"--output"}, "{}: is a folder, not a file", file));
  } else if (fs::is_symlink(status)) {
    out.add(make_refusal(ErrorCode::kNotWritable, {"--output"}, "{}: is a symbolic link, which the file would replace",
                         file)
                .with_hint("name its target, or remove the link"));
  } else if (!fs::is_regular_file(status)) {
    out.add(make_refusal(ErrorCode::kNotWritable, {"--output"}, "{}: is {}, not a file", file, kind_text(status.type()))
                .with_hint("name another file"));
  } else if (!force) {
    const bool left_over = file.extension() == ".partial";
    out.add(make_refusal(ErrorCode::kAlreadyExists, {"--output"},
                         left_over ? "{}: already exists: a stopped run left it, or another run is writing it"
                                   : "{}: already exists",
                         file)
                .with_hint("add --force to replace it"));
  }
}

void check_separator(const std::string& separator, Refusals& out) {
  if (separator.empty() || separator.find_first_of("\r\n") != std::string::npos) {
    out.add(make_refusal(ErrorCode::kMalformed, {"--separator"},
                         "--separator must be a line of text without a line break"));
  }
}

void check_threads(int threads, Refusals& out) {
  if (threads < 1 || threads > kMaxThreads) {
    out.add(make_refusal(ErrorCode::kOutOfRange, {"--threads"}, "--threads must be in [1, {}], got {}", kMaxThreads,
                         threads));
  }
}

std::uint64_t read_documents(const std::vector<fs::path>& inputs, const std::string& separator, bool any_bytes,
                             JobFiller& filler, const ReadProgress& progress) {
  DocumentSplitter splitter(separator, filler);
  const std::uint64_t total = size_of(inputs);
  std::uint64_t done = 0;
  for (const fs::path& file : inputs) {
    read_input(file, any_bytes, splitter, filler, [&](std::size_t got) {
      done += got;
      if (progress) progress(done, total);
    });
  }
  return done;
}

} // namespace triax::data
