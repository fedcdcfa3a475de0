// SPDX-License-Identifier: Apache-2.0
#include "copy_plan.hpp"

namespace triax::cuda {

CopyPieces::CopyPieces(const TensorView& to, const TensorView& from) noexcept
    : element_bytes_(static_cast<std::int64_t>(bytes_of(to.dtype()))) {
  if (to.elements() == 0) return;
  join_dims(to, from);
  const std::int64_t row = dims_[0].size;
  const auto has_pitch = [&](std::int64_t stride) {
    return stride >= row && stride * element_bytes_ <= kMaxPitchBytes;
  };
  rows_ = {1, row, row};
  if (dim_count_ > 1 && has_pitch(dims_[1].to) && has_pitch(dims_[1].from)) { // else one piece per row
    rows_ = dims_[1];
    inner_ = 2;
  }
  count_ = to.elements() / (row * rows_.size);
}

void CopyPieces::join_dims(const TensorView& to, const TensorView& from) noexcept {
  for (int dim = to.rank() - 1; dim >= 0; --dim) {
    const Dim next{to.size(dim), to.stride(dim), from.stride(dim)};
    Dim& last = dims_[dim_count_ - 1];
    if (next.size == 1) continue;
    if (next.to == last.size * last.to && next.from == last.size * last.from) {
      last.size *= next.size;
    } else {
      dims_[dim_count_++] = next;
    }
  }
}

CopyPiece CopyPieces::operator[](std::int64_t number) const noexcept {
  std::int64_t at_to = 0, at_from = 0;
  for (std::size_t dim = inner_; dim < dim_count_; ++dim) {
    at_to += number % dims_[dim].size * dims_[dim].to;
    at_from += number % dims_[dim].size * dims_[dim].from;
    number /= dims_[dim].size;
  }
  const auto bytes = [this](std::int64_t elements) { return static_cast<std::size_t>(elements * element_bytes_); };
  return {.to = at_to * element_bytes_,
          .from = at_from * element_bytes_,
          .width = bytes(dims_[0].size),
          .rows = static_cast<std::size_t>(rows_.size),
          .to_pitch = bytes(rows_.to),
          .from_pitch = bytes(rows_.from)};
}

} // namespace triax::cuda
