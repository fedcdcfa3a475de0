// SPDX-License-Identifier: Apache-2.0
#include "data/document_jobs.hpp"

#include <algorithm>

#include "data/tokenizer/utf8.hpp"
#include "triax/error.hpp"

namespace triax::data {

namespace {

constexpr std::size_t kJobBytes = 1 << 16;
constexpr std::size_t kMaxPieces = 1 << 12; // per job: documents may be one byte long

} // namespace

TextPart DocumentJob::part(std::size_t piece) const {
  const std::size_t begin = piece == 0 ? 0 : pieces[piece - 1].end;
  const Piece& of = pieces[piece];
  return {std::string_view(text).substr(begin, of.end - begin), of.begins, of.closed, of.skip};
}

void DocumentJob::encode(Encoder& encoder, std::int32_t end) {
  ids.clear();
  document_ends.clear();
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    try {
      encoder.encode(part(piece), ids);
    } catch (const Error& error) { // for a long word, which is the only text of its job
      throw Error(triax::text("{}, before byte {}", error.message(), file_end), file.string(), error.hint());
    }
    if (!pieces[piece].ends_document) continue;
    if (end >= 0) ids.push_back(end);
    document_ends.push_back(static_cast<std::uint32_t>(ids.size()));
  }
}

JobFiller::JobFiller(OrderedWork<DocumentJob>& work, std::unique_ptr<Encoder> cutter, bool any_bytes)
    : work_(&work), cutter_(std::move(cutter)), any_bytes_(any_bytes), job_(&work.next()), limit_(kJobBytes) {}

void JobFiller::set_source(const std::filesystem::path& file, std::uint64_t end) {
  if (file != file_) file_ = file;
  file_end_ = end;
}

void JobFiller::text(std::string_view piece) {
  while (!piece.empty()) {
    const std::size_t taken = std::min(piece.size(), limit_ - job_->text.size());
    job_->text += piece.substr(0, taken);
    piece.remove_prefix(taken);
    while (job_->text.size() >= limit_) full();
  }
}

void JobFiller::end_document() {
  start_ = job_->text.size();
  job_->pieces.push_back({static_cast<std::uint32_t>(start_), begins_, true, true, skip_});
  begins_ = true;
  skip_ = 0;
  limit_ = kJobBytes;
  if (start_ >= kJobBytes || job_->pieces.size() == kMaxPieces) hand_over(start_);
}

void JobFiller::full() {
  if (start_ > 0) return hand_over(start_); // submits the earlier documents; the open one begins the next job
  const std::string_view text = job_->text;
  const TextPart open{text.substr(0, any_bytes_ ? text.size() : whole_characters(text)), begins_, false, skip_};
  const PartCut cut = cutter_->cut(open);
  if (cut.done.bytes == 0) {
    if (text.size() > kMaxWord) {
      const Error error = word_too_long();
      throw Error(triax::text("{}, before byte {}", error.message(), file_end_), file_.string(), error.hint());
    }
    limit_ = text.size() + std::min(text.size(), kMaxWord);
    return;
  }
  const std::size_t end = cut.closed ? cut.done.bytes : open.text.size();
  job_->pieces.push_back({static_cast<std::uint32_t>(end), begins_, cut.closed, false, skip_});
  begins_ = cut.done.begins;
  skip_ = cut.done.skip;
  limit_ = kJobBytes;
  hand_over(cut.done.bytes);
}

void JobFiller::hand_over(std::size_t keep) {
  carry_.assign(job_->text, keep);
  if (job_->file != file_) job_->file = file_;
  job_->file_end = file_end_;
  work_->hand_over();
  job_ = &work_->next();
  job_->text.assign(carry_);
  job_->pieces.clear();
  start_ = 0;
}

void JobFiller::finish() {
  if (!job_->pieces.empty()) hand_over(job_->text.size());
  work_->finish();
}

} // namespace triax::data
