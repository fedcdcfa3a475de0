#include "data/prepare.hpp"

#include <cmath>
#include <memory>
#include <system_error>

#include "data/document_splitter.hpp"
#include "data/input_file.hpp"
#include "data/token_writer.hpp"
#include "data/tokenizer.hpp"

namespace triax::data {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPiece = 1 << 16; // bytes read, and tokens made, at a time

/// Turns documents into tokens, each document into one of the datasets.
class Encoder final : public DocumentSink {
 public:
  explicit Encoder(const PrepareRequest& request)
      : fraction_(request.validation_fraction), train_(request.output), tokens_(kPiece) {
    if (fraction_ > 0) validation_.emplace(beside(request.output, "-validation"));
  }

  void text(std::string_view piece) override {
    while (!piece.empty()) {
      const std::size_t taken = std::min(piece.size(), kPiece);
      for (std::size_t i = 0; i < taken; ++i) tokens_[i] = static_cast<unsigned char>(piece[i]);
      writer().add({tokens_.data(), taken});
      piece.remove_prefix(taken);
    }
  }

  void end_document() override {
    const std::uint16_t end = ByteTokenizer::kEndOfDocument;
    writer().add({&end, 1});
    writer().end_document();
    ++documents_;
  }

  /// Throws Error if a dataset would be empty.
  void check() const {
    if (documents_ == 0) throw Error("the inputs hold no text", {}, "give --input files with text in them");
    if (validation_ && (validation_->documents() == 0 || train_.documents() == 0)) {
      throw Error(
          triax::text("a fraction of {} of {} documents leaves one of the two datasets empty", fraction_, documents_),
          "--validation-fraction", "use another fraction, or cut the text into documents with --separator");
    }
  }

  TokenWriter& train() { return train_; }
  std::optional<TokenWriter>& validation() { return validation_; }

 private:
  /// Of n documents, floor(n * fraction) are for validation: the next one is if it makes that number grow.
  TokenWriter& writer() {
    const auto before = static_cast<double>(documents_);
    const bool grows = std::floor((before + 1) * fraction_) > std::floor(before * fraction_);
    return validation_ && grows ? *validation_ : train_;
  }

  double fraction_;
  std::int64_t documents_ = 0;
  TokenWriter train_;
  std::optional<TokenWriter> validation_;
  std::vector<std::uint16_t> tokens_;
};

std::uint64_t size_of_inputs(const PrepareRequest& request) {
  std::uint64_t total = 0;
  for (const fs::path& input : request.inputs) {
    std::error_code failure; // said when it is opened
    const std::uint64_t bytes = fs::file_size(input, failure);
    if (!failure) total += bytes;
  }
  return total;
}

/// Returns their size.
std::uint64_t read_inputs(const PrepareRequest& request, DocumentSink& sink, const ReadProgress& progress) {
  DocumentSplitter splitter(request.separator.value_or(""), sink);
  const std::uint64_t total = size_of_inputs(request);
  std::uint64_t done = 0;
  std::vector<char> piece(kPiece);
  for (const fs::path& file : request.inputs) {
    const InputFile input(file);
    std::uint64_t offset = 0;
    while (const std::size_t got = input.read_some(offset, std::as_writable_bytes(std::span(piece)))) {
      splitter.feed({piece.data(), got});
      offset += got;
      done += got;
      if (progress) progress(done, total);
    }
    splitter.end_input();
  }
  return done;
}

void make_room(const PrepareRequest& request) {
  std::error_code failure;
  const fs::path folder = request.output.parent_path();
  if (!folder.empty()) fs::create_directories(folder, failure);
  if (failure) throw Error(text("the folder cannot be made: {}", failure.message()), folder.string());
  if (!request.force) return;
  for (const fs::path& prefix : {request.output, beside(request.output, "-validation")}) {
    if (prefix != request.output && request.validation_fraction <= 0) break;
    for (const fs::path& file : dataset_files(prefix)) fs::remove(partial(file), failure);
  }
}

PreparedPart part(const fs::path& prefix, const TokenWriter& writer) {
  return {prefix, writer.documents(), writer.tokens(), writer.bytes()};
}

} // namespace

Prepared prepare(const PrepareRequest& request, const ReadProgress& progress) {
  make_room(request);
  Encoder encoder(request);
  const std::uint64_t bytes = read_inputs(request, encoder, progress);
  encoder.check();
  encoder.train().finish();
  if (encoder.validation()) encoder.validation()->finish();
  if (progress) progress(bytes, bytes);
  Prepared out;
  if (encoder.validation()) {
    encoder.validation()->commit();
    out.validation = part(beside(request.output, "-validation"), *encoder.validation());
  }
  encoder.train().commit();
  out.train = part(request.output, encoder.train());
  return out;
}

} // namespace triax::data
