#include "data/document_reader.hpp"

#include <unistd.h>

#include <system_error>

#include "data/input_file.hpp"
#include "data/tokenizer/utf8.hpp"

namespace triax::data {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPiece = 1 << 16; // bytes read at a time
constexpr int kMostThreads = 1024;

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code failure;
  return fs::equivalent(a, b, failure) && !failure;
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

void check_input(const std::vector<fs::path>& inputs, std::size_t index, std::vector<Support>& out) {
  const fs::path& input = inputs[index];
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
    if (!fs::exists(status) || !same_file(inputs[other], input)) continue;
    out.push_back(Support::no("{}: is given twice{}", input,
                              inputs[other] == input ? "" : ", also as " + inputs[other].string()));
    break;
  }
}

std::uint64_t size_of(const std::vector<fs::path>& inputs) {
  std::uint64_t total = 0;
  for (const fs::path& input : inputs) {
    std::error_code failure; // said when it is opened
    const std::uint64_t bytes = fs::file_size(input, failure);
    if (!failure) total += bytes;
  }
  return total;
}

/// Feeds all of one input, which is checked to be UTF-8 if it has to be.
void read_input(const fs::path& file, bool any_bytes, DocumentSplitter& splitter, JobFiller& filler,
                const std::function<void(std::size_t)>& read) {
  const InputFile input(file);
  std::vector<char> piece(kPiece);
  Utf8Check check;
  const auto refuse = [&] {
    throw Error(text("byte {} is not UTF-8", check.bad_at()), file.string(),
                "bring it to UTF-8, for example with iconv; or use --tokenizer byte, which takes any bytes");
  };
  std::uint64_t offset = 0;
  while (const std::size_t got = input.read_some(offset, std::as_writable_bytes(std::span(piece)))) {
    const std::string_view bytes(piece.data(), got);
    if (!any_bytes && !check.feed(bytes)) refuse();
    offset += got;
    filler.set_place(file, offset);
    splitter.feed(bytes);
    read(got);
  }
  if (!any_bytes && !check.finish()) refuse();
  splitter.end_input();
}

} // namespace

void check_inputs(const std::vector<fs::path>& inputs, std::vector<Support>& out) {
  if (inputs.empty()) out.push_back(Support::no("--input: names no file"));
  for (std::size_t i = 0; i < inputs.size(); ++i) check_input(inputs, i, out);
}

void check_separator(const std::string& separator, std::vector<Support>& out) {
  if (separator.empty() || separator.find_first_of("\r\n") != std::string::npos) {
    out.push_back(Support::no("--separator: is a whole line, so it has text and no line break"));
  }
}

void check_threads(int threads, std::vector<Support>& out) {
  if (threads < 1 || threads > kMostThreads) {
    out.push_back(Support::no("--threads {}: lies outside 1 to {}", threads, kMostThreads));
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
