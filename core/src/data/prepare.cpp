// SPDX-License-Identifier: Apache-2.0
#include "data/prepare.hpp"

#include <cmath>
#include <memory>
#include <system_error>

#include "data/document_jobs.hpp"
#include "data/prefix_lock.hpp"
#include "data/token_writer.hpp"

namespace triax::data {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxForU16 = 65500; // as in Megatron: a larger vocabulary needs 32 bits

TokenFormat format_of(const Tokenizer& tokenizer, std::optional<std::int32_t> end) {
  return {tokenizer.vocab() < kMaxForU16 ? TokenType::u16 : TokenType::i32, dataset_info(tokenizer, end),
          tokenizer.json()};
}

/// Writes each encoded document to one of the datasets.
class DocumentWriter {
 public:
  DocumentWriter(const PrepareRequest& request, const TokenFormat& format)
      : fraction_(request.validation_fraction), train_(request.output, format) {
    if (fraction_ > 0) validation_.emplace(beside(request.output, "-validation"), format);
  }

  void take(const DocumentJob& job) {
    const std::span<const std::int32_t> ids = job.ids;
    std::size_t begin = 0;
    for (const std::uint32_t end : job.document_ends) {
      writer().add(ids.subspan(begin, end - begin));
      writer().end_document();
      ++documents_;
      begin = end;
    }
    writer().add(ids.subspan(begin)); // start of a document that is not complete
  }

  /// Throws Error if a dataset is empty.
  void check() const {
    if (documents_ == 0) throw Error("the inputs contain no text", {}, "give --input files with text in them");
    if (validation_ && (validation_->documents() == 0 || train_.documents() == 0)) {
      throw Error(triax::text("--validation-fraction {} of {} document{} leaves the training or the validation dataset "
                              "empty",
                              fraction_, documents_, documents_ == 1 ? "" : "s"),
                  {}, "use another fraction, or cut the text into documents with --separator");
    }
  }

  TokenWriter& train() { return train_; }
  std::optional<TokenWriter>& validation() { return validation_; }

 private:
  /// The writer of the next document. Among the first n, floor(n * fraction) are for validation: the next one is, if it
  /// increases this number.
  TokenWriter& writer() {
    const auto before = static_cast<double>(documents_);
    const bool grows = std::floor((before + 1) * fraction_) > std::floor(before * fraction_);
    return validation_ && grows ? *validation_ : train_;
  }

  double fraction_;
  std::int64_t documents_ = 0;
  TokenWriter train_;
  std::optional<TokenWriter> validation_;
};

/// Returns the size of the inputs.
std::uint64_t encode_inputs(const PrepareRequest& request, const Tokenizer& tokenizer, std::optional<std::int32_t> end,
                            DocumentWriter& writer, const ReadProgress& progress) {
  std::vector<std::unique_ptr<Encoder>> encoders;
  encoders.reserve(static_cast<std::size_t>(request.threads));
  for (int thread = 0; thread < request.threads; ++thread) encoders.push_back(tokenizer.encoder());
  OrderedWork<DocumentJob> work(
      request.threads,
      [&](DocumentJob& job, int thread) { job.encode(*encoders[static_cast<std::size_t>(thread)], end.value_or(-1)); },
      [&](DocumentJob& job) { writer.take(job); });
  JobFiller filler(work, tokenizer.encoder(), tokenizer.takes_any_bytes());
  const std::uint64_t bytes =
      read_documents(request.inputs, request.separator.value_or(""), tokenizer.takes_any_bytes(), filler, progress);
  filler.finish();
  return bytes;
}

void create_folder(const PrepareRequest& request) {
  std::error_code failure;
  const fs::path folder = request.output.parent_path();
  if (!folder.empty()) fs::create_directories(folder, failure);
  if (failure) throw Error(text("cannot create the folder: {}", failure.message()), folder.string());
}

/// Removes files that a stopped process left. Call it only with the lock.
void remove_partial(const PrepareRequest& request) {
  std::error_code ignored;
  for (const fs::path& prefix : {request.output, beside(request.output, "-validation")}) {
    if (prefix != request.output && request.validation_fraction <= 0) break;
    for (const fs::path& file : dataset_files(prefix)) fs::remove(partial(file), ignored);
  }
}

PreparedPart part(const fs::path& prefix, const TokenWriter& writer, const TokenFormat& format) {
  PreparedPart out{prefix, writer.documents(), writer.tokens(), writer.bytes(), {}};
  for (const char* ending : {".bin", ".idx", ".json"}) out.files.push_back(beside(prefix, ending));
  if (!format.tokenizer.empty()) out.files.push_back(tokenizer_file(prefix));
  return out;
}

} // namespace

std::optional<std::int32_t> end_of_document(const PrepareRequest& request, const Tokenizer& tokenizer) {
  if (tokenizer.kind() == ByteTokenizer::kName) return ByteTokenizer::kEndOfDocument;
  if (!request.append_eod) return std::nullopt;
  const std::optional<std::int32_t> id = tokenizer.id_of(request.eod_token);
  if (id) return id;
  std::string known;
  for (const std::string& token : tokenizer.added_tokens()) known.append(known.empty() ? "" : ", ").append(token);
  throw Error(text("the tokenizer has no added token \"{}\"", request.eod_token), "--append-eod",
              known.empty() ? "it has no added tokens; omit --append-eod" : "name one with --eod-token: " + known);
}

Prepared prepare(const PrepareRequest& request, const ReadProgress& progress) {
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(request.tokenizer);
  const std::optional<std::int32_t> end = end_of_document(request, *tokenizer);
  const TokenFormat format = format_of(*tokenizer, end);
  create_folder(request);
  const PrefixLock lock(request.output);
  if (request.force) remove_partial(request);
  DocumentWriter writer(request, format);
  const std::uint64_t bytes = encode_inputs(request, *tokenizer, end, writer, progress);
  writer.check();
  writer.train().finish();
  if (writer.validation()) writer.validation()->finish();
  if (progress) progress(bytes, bytes);
  Prepared out;
  out.vocab = tokenizer->vocab();
  if (writer.validation()) {
    writer.validation()->commit();
    out.validation = part(beside(request.output, "-validation"), *writer.validation(), format);
  }
  writer.train().commit();
  out.train = part(request.output, writer.train(), format);
  return out;
}

} // namespace triax::data
