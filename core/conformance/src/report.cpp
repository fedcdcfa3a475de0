// SPDX-License-Identifier: Apache-2.0
#include "triax/conformance/report.hpp"

#include <algorithm>
#include <utility>

namespace triax::conformance {

void Report::fail(std::string failure, int rank) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::count(failures_, rank, &Failure::rank) < kMaxFailures) {
    failures_.push_back({rank, std::move(failure)});
  } else {
    ++more_;
  }
}

std::vector<std::string> Report::failures() const {
  const std::lock_guard lock(mutex_);
  std::vector<Failure> sorted = failures_;
  std::ranges::stable_sort(sorted, {}, &Failure::rank);
  std::vector<std::string> out;
  for (Failure& failure : sorted) out.push_back(std::move(failure.text));
  if (more_ > 0) out.push_back(text("and {} more", more_));
  return out;
}

bool Report::has_failed() const {
  const std::lock_guard lock(mutex_);
  return !failures_.empty();
}

std::string missing_part(const std::string& error, std::initializer_list<std::string_view> parts) {
  if (error.empty()) return "must fail, but did not";
  for (const std::string_view part : parts)
    if (error.find(part) == std::string::npos) return text("must fail with \"{}\"; the error is \"{}\"", part, error);
  return {};
}

} // namespace triax::conformance
