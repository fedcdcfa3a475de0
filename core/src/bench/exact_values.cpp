// SPDX-License-Identifier: Apache-2.0
#include "bench/exact_values.hpp"

#include <algorithm>

#include "triax/element_type.hpp"

namespace triax::bench {

namespace {

constexpr int kRankStep = 37;

/// The largest integer up to which a type represents all.
int exact_limit(DType dtype) {
  if (dtype == DType::bf16) return 1 << 8;
  if (dtype == DType::f16) return 1 << 11;
  if (dtype == DType::u8) return 255;
  return 1 << 24;
}

bool is_prime(int number) {
  for (int divisor = 2; divisor * divisor <= number; ++divisor)
    if (number % divisor == 0) return false;
  return number > 1;
}

/// The largest prime p <= 251 for which ranks * (p - 1) is exact; at least 2.
int prime_for(CommOperation operation, DType dtype, int ranks) {
  const int terms = reduces(operation) ? ranks : 1;
  int out = std::clamp(exact_limit(dtype) / terms, 2, 251);
  while (!is_prime(out)) --out;
  return out;
}

double as_double(double value) {
  return value;
}
template <class T>
double as_double(T value) {
  return static_cast<double>(static_cast<float>(value));
}

} // namespace

int max_exact_ranks(DType dtype) {
  return 2 * exact_limit(dtype);
}

ExactValues::ExactValues(CommOperation operation, DType dtype, int ranks)
    : operation_(operation), ranks_(ranks), prime_(prime_for(operation, dtype, ranks)) {}

int ExactValues::value(int rank, std::int64_t element) const {
  return static_cast<int>((std::int64_t{kRankStep} * rank + element) % prime_);
}

std::vector<int> ExactValues::row_of(int rank) const {
  std::vector<int> out(static_cast<std::size_t>(prime_));
  for (int i = 0; i < prime_; ++i) out[static_cast<std::size_t>(i)] = value(rank, i);
  return out;
}

std::vector<int> ExactValues::summed_row() const {
  std::vector<int> out(static_cast<std::size_t>(prime_));
  for (int i = 0; i < prime_; ++i)
    for (int rank = 0; rank < ranks_; ++rank) out[static_cast<std::size_t>(i)] += value(rank, i);
  return out;
}

void ExactValues::write_input(int rank, const TensorView& view) const {
  if (operation_ == CommOperation::broadcast && rank != 0) return write_invalid(view);
  const std::vector<int> row = row_of(rank);
  with_type(view.dtype(), [&](auto type) {
    auto* const to = view.as<decltype(type)>();
    std::size_t at = 0;
    for (std::int64_t i = 0; i < view.elements(); ++i, at = at + 1 == row.size() ? 0 : at + 1)
      to[i] = static_cast<decltype(type)>(static_cast<float>(row[at]));
  });
}

void ExactValues::write_invalid(const TensorView& view) const {
  // Results are not negative. In u8 they are below the largest prime, 251.
  const float invalid = view.dtype() == DType::u8 ? 255 : -1;
  with_type(view.dtype(), [&](auto type) {
    std::fill_n(view.as<decltype(type)>(), view.elements(), static_cast<decltype(type)>(invalid));
  });
}

std::vector<ExactValues::Run> ExactValues::runs_of(int rank, std::int64_t elements) const {
  const std::int64_t part = elements / ranks_;
  switch (operation_) {
    case CommOperation::all_reduce:
      return {{0, elements, summed_row(), 0}};
    case CommOperation::reduce_scatter:
      return {{0, elements, summed_row(), rank * elements % prime_}};
    case CommOperation::broadcast:
      return {{0, elements, row_of(0), 0}};
    case CommOperation::send: // received by odd ranks
      return {{0, elements, row_of(rank - 1), 0}};
    case CommOperation::exchange:
      return {{0, elements, row_of((rank + ranks_ - 1) % ranks_), 0}};
    default:
      break;
  }
  std::vector<Run> out;
  out.reserve(static_cast<std::size_t>(ranks_));
  const std::int64_t first = operation_ == CommOperation::all_to_all ? rank * part % prime_ : 0;
  for (int peer = 0; peer < ranks_; ++peer) out.push_back({peer * part, (peer + 1) * part, row_of(peer), first});
  return out;
}

std::optional<WrongElement> ExactValues::find_wrong(int rank, const TensorView& output) const {
  std::optional<WrongElement> out;
  with_type(output.dtype(), [&](auto type) {
    const auto* const got = output.as<const decltype(type)>();
    for (const Run& run : runs_of(rank, output.elements())) {
      auto at = static_cast<std::size_t>(run.first);
      for (std::int64_t i = run.begin; i < run.end; ++i, at = at + 1 == run.row.size() ? 0 : at + 1) {
        if (as_double(got[i]) == run.row[at]) continue;
        if (!out) out = WrongElement{i, 0, as_double(got[i]), static_cast<double>(run.row[at])};
        ++out->wrong_elements;
      }
    }
  });
  return out;
}

} // namespace triax::bench
