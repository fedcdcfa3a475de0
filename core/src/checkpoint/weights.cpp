// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/weights.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <set>
#include <string>

namespace triax::checkpoint {

namespace {

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// Takes the number that `text` begins with, without zeros before it.
std::string_view take_number(std::string_view& text) {
  const std::size_t digits =
      std::min(text.size(), static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin()));
  std::string_view out = text.substr(0, digits);
  text.remove_prefix(digits);
  out.remove_prefix(std::min(out.find_first_not_of('0'), out.size()));
  return out;
}

} // namespace

bool is_before(std::string_view first, std::string_view second) {
  const std::string_view whole_first = first, whole_second = second;
  while (!first.empty() && !second.empty()) {
    if (is_digit(first.front()) && is_digit(second.front())) {
      const std::string_view a = take_number(first), b = take_number(second);
      if (a.size() != b.size()) return a.size() < b.size();
      if (a != b) return a < b;
      continue;
    }
    if (first.front() != second.front())
      return static_cast<unsigned char>(first.front()) < static_cast<unsigned char>(second.front());
    first.remove_prefix(1);
    second.remove_prefix(1);
  }
  if (first.empty() != second.empty()) return first.empty();
  return whole_first < whole_second; // "1" and "01"
}

std::vector<const SavedTensor*> weights_of(const Manifest& manifest) {
  std::vector<const SavedTensor*> out;
  for (const SavedTensor& tensor : manifest.content.tensors)
    if (tensor.state == kMasterState) out.push_back(&tensor);
  std::ranges::stable_sort(out, is_before, &SavedTensor::parameter);
  return out;
}

std::int64_t parameters_of(const Manifest& manifest) {
  std::int64_t out = 0;
  for (const SavedTensor* tensor : weights_of(manifest)) out += tensor->shape.elements();
  return out;
}

void check_weights(TensorReader& reader, const StopRequest& stop) {
  const std::vector<const SavedTensor*> weights = weights_of(reader.manifest());
  const std::string manifest = (reader.folder() / kManifestFile).string();
  if (weights.empty()) throw Error("names no weights", manifest, "use another checkpoint");
  std::set<std::string> holding;
  for (const SavedTensor* tensor : weights) {
    if (!is_floating(tensor->dtype))
      throw Error(text("{} is {}, which is not a floating type", name_of(*tensor), triax::name_of(tensor->dtype)),
                  manifest, "use another checkpoint");
    for (const Piece& piece : tensor->pieces) holding.insert(piece.file);
  }
  const std::vector<SavedFile>& files = reader.manifest().content.files;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!holding.contains(files[i].name)) continue;
    const std::vector<Error> problems = reader.verify(i, files.size(), stop);
    check_stop(stop);
    if (!problems.empty()) throw problems.front();
  }
}

void check_stop(const StopRequest& stop) {
  if (is_stopped(stop)) throw Error("stopped by a signal");
}

} // namespace triax::checkpoint
