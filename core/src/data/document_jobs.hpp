// SPDX-License-Identifier: Apache-2.0
// Cuts documents into jobs for several threads. Short documents share a job; a long one is split into parts that are
// encoded as the whole document would be.
//
// Threads: the filler is used by the reading thread. Blocking: as OrderedWork::next(). Memory: a job holds about
// kJobBytes, or more if a word is longer, up to kMaxWord. Errors: Error with the file for a word that is longer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/document_splitter.hpp"
#include "data/ordered_work.hpp"
#include "data/tokenizer/tokenizer.hpp"

namespace triax::data {

struct DocumentJob {
  struct Piece {
    std::uint32_t end = 0; // end offset in `text`; a piece begins where the previous one ends
    bool begins = true, closed = true, ends_document = true;
    std::size_t skip = 0; // see TextPart
  };
  std::string text;
  std::vector<Piece> pieces;
  std::vector<std::int32_t> ids;            // of all pieces
  std::vector<std::uint32_t> document_ends; // offsets in `ids`
  std::filesystem::path file;               // for errors: file and end byte of its last document
  std::uint64_t file_end = 0;

  TextPart part(std::size_t piece) const;
  /// Fills `ids` and `document_ends`. Appends `end` to each document, unless it is negative.
  void encode(Encoder& encoder, std::int32_t end);
};

class JobFiller final : public DocumentSink {
 public:
  JobFiller(OrderedWork<DocumentJob>& work, std::unique_ptr<Encoder> cutter, bool any_bytes);

  /// Sets the source of the text that follows, for errors: this file, up to byte `end`.
  void set_source(const std::filesystem::path& file, std::uint64_t end);
  void text(std::string_view piece) override;
  void end_document() override;
  /// Submits the remaining text.
  void finish();

 private:
  void full();
  /// Submits the job without the text from `keep` on, which becomes the start of the next job.
  void hand_over(std::size_t keep);

  OrderedWork<DocumentJob>* work_;
  std::unique_ptr<Encoder> cutter_;
  bool any_bytes_;
  DocumentJob* job_;
  std::string carry_;
  std::size_t start_ = 0; // start of the open document
  bool begins_ = true;    // no part of it was submitted, or the last token was an added token
  std::size_t skip_ = 0;  // of the next part, see TextPart
  std::size_t limit_;     // maximum bytes of a job's text
  std::filesystem::path file_;
  std::uint64_t file_end_ = 0;
};

} // namespace triax::data
