// SPDX-License-Identifier: Apache-2.0
// Puts the parts of a checkpoint together, and checks that they are whole (manifest.hpp).
#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "checkpoint/manifest.hpp"
#include "triax/error.hpp"

namespace triax::checkpoint {

void PartMerger::add(SavedPart part) {
  std::ranges::move(part.files, std::back_inserter(all_.files));
  for (SavedTensor& tensor : part.tensors) {
    const auto [found, is_new] = index_.try_emplace({tensor.parameter, tensor.state}, all_.tensors.size());
    if (is_new) {
      all_.tensors.push_back(std::move(tensor));
      continue;
    }
    SavedTensor& whole = all_.tensors[found->second];
    if (whole.dtype != tensor.dtype || !(whole.shape == tensor.shape))
      throw Error(text("ranks describe {} differently: {}{} and {}{}", name_of(tensor), triax::name_of(whole.dtype),
                       to_text(whole.shape), triax::name_of(tensor.dtype), to_text(tensor.shape)),
                  {}, "this is a defect of the model or of Triax: report it with the run's TOML");
    std::ranges::move(tensor.pieces, std::back_inserter(whole.pieces));
  }
}

namespace {

bool overlap(const Piece& a, const Piece& b) {
  for (int dim = 0; dim < a.begin.rank(); ++dim)
    if (a.begin[dim] + a.size[dim] <= b.begin[dim] || b.begin[dim] + b.size[dim] <= a.begin[dim]) return false;
  return a.size.elements() > 0 && b.size.elements() > 0;
}

/// The dimension in which pieces begin at most places.
int most_divided(const SavedTensor& tensor) {
  int out = 0;
  std::size_t most = 0;
  for (int dim = 0; dim < tensor.shape.rank(); ++dim) {
    std::set<std::int64_t> begins;
    for (const Piece& piece : tensor.pieces) begins.insert(piece.begin[dim]);
    if (begins.size() > most) out = dim;
    most = std::max(most, begins.size());
  }
  return out;
}

/// Two pieces with common elements, or null. Compares pieces that meet in one dimension: few, of what ranks write.
const Piece* find_overlap(const SavedTensor& tensor) {
  if (tensor.shape.rank() == 0) return nullptr;
  const int dim = most_divided(tensor);
  std::vector<const Piece*> by_row;
  by_row.reserve(tensor.pieces.size());
  for (const Piece& piece : tensor.pieces) by_row.push_back(&piece);
  std::ranges::sort(by_row, {}, [dim](const Piece* piece) { return piece->begin[dim]; });
  for (std::size_t i = 0; i < by_row.size(); ++i)
    for (std::size_t j = i + 1;
         j < by_row.size() && by_row[j]->begin[dim] < by_row[i]->begin[dim] + by_row[i]->size[dim]; ++j)
      if (overlap(*by_row[i], *by_row[j])) return by_row[j];
  return nullptr;
}

} // namespace

void check_whole(const SavedPart& all, const std::string& from) {
  std::set<std::string> files;
  for (const SavedFile& file : all.files)
    if (!files.insert(file.name).second)
      throw Error(text("{} is listed twice", file.name), from, "use another checkpoint");
  std::set<std::pair<std::string, std::string>> tensors;
  for (const SavedTensor& tensor : all.tensors) {
    if (!tensors.insert({tensor.parameter, tensor.state}).second)
      throw Error(text("{} is listed twice", name_of(tensor)), from, "use another checkpoint");
    std::int64_t elements = 0;
    for (const Piece& piece : tensor.pieces) {
      if (!files.contains(piece.file))
        throw Error(text("{} has a piece in {}, which is not in the list of files", name_of(tensor), piece.file), from,
                    "use another checkpoint");
      elements += piece.size.elements();
      if (elements > tensor.shape.elements()) break; // before the sum could overflow
    }
    if (elements != tensor.shape.elements())
      throw Error(text("the pieces of {} have {} elements, but the tensor has {}", name_of(tensor), elements,
                       tensor.shape.elements()),
                  from, "use another checkpoint");
    if (const Piece* const twice = find_overlap(tensor))
      throw Error(text("the pieces of {} overlap: part of piece {} (file {}) is also in another piece", name_of(tensor),
                       twice->key, twice->file),
                  from, "use another checkpoint");
  }
}

} // namespace triax::checkpoint
