// Documents as jobs for many threads: short ones together, a long one in parts that are encoded as the whole would be.
//
// Threads: the filler belongs to the thread that reads. Ownership: borrows the work that it fills. Blocking: as
// OrderedWork::next(). Memory: a job holds about kJobBytes; a word that is longer, up to kLongestWord, makes it longer.
// Errors: Error of a word that is longer still, naming the file.
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
    std::uint32_t end = 0; // in `text`; it begins where the one before it ends
    bool begins = true, closed = true, ends_document = true;
  };
  std::string text;
  std::vector<Piece> pieces;
  std::vector<std::int32_t> ids;            // of all pieces
  std::vector<std::uint32_t> document_ends; // in `ids`
  std::filesystem::path file;               // for errors: of its last document, up to that byte
  std::uint64_t file_end = 0;

  TextPart part(std::size_t piece) const;
  /// Fills `ids` and `document_ends`; `end` is appended to each document, unless it is negative.
  void encode(Encoder& encoder, std::int32_t end);
};

class JobFiller final : public DocumentSink {
 public:
  JobFiller(OrderedWork<DocumentJob>& work, std::unique_ptr<Encoder> cutter, bool any_bytes);

  /// For errors: what comes next is from this file, up to that byte.
  void set_place(const std::filesystem::path& file, std::uint64_t end);
  void text(std::string_view piece) override;
  void end_document() override;
  /// Hands over what is left.
  void finish();

 private:
  void full();
  /// The job without what lies from `keep` on, which begins the next one.
  void hand_over(std::size_t keep);

  OrderedWork<DocumentJob>* work_;
  std::unique_ptr<Encoder> cutter_;
  bool any_bytes_;
  DocumentJob* job_;
  std::string carry_;
  std::size_t start_ = 0; // of the open document
  bool begins_ = true;    // nothing of it was handed over, or an added token was the last
  std::size_t limit_;     // of the text of a job
  std::filesystem::path file_;
  std::uint64_t file_end_ = 0;
};

} // namespace triax::data
