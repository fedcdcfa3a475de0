// SPDX-License-Identifier: Apache-2.0
#include "copy_plan.hpp"

namespace triax::cuda {

namespace {

struct Dim {
  std::int64_t size, to, from; // strides in elements
};

/// Leaves out dimensions of size 1 and joins dimensions that are adjacent in both views. Innermost first.
std::vector<Dim> joined_dims(const TensorView& to, const TensorView& from) {
  std::vector<Dim> dims;
  for (int dim = to.rank() - 1; dim >= 0; --dim) {
    const Dim next{to.size(dim), to.stride(dim), from.stride(dim)};
    if (next.size == 1) continue;
    if (!dims.empty() && next.to == dims.back().size * dims.back().to &&
        next.from == dims.back().size * dims.back().from) {
      dims.back().size *= next.size;
    } else {
      dims.push_back(next);
    }
  }
  return dims;
}

} // namespace

std::vector<CopyPiece> copy_pieces(const TensorView& to, const TensorView& from) {
  std::vector<CopyPiece> pieces;
  if (to.elements() == 0) return pieces;
  const auto bytes = static_cast<std::int64_t>(bytes_of(to.dtype()));
  std::vector<Dim> dims = joined_dims(to, from);
  if (dims.empty() || dims.front().to != 1 || dims.front().from != 1) dims.insert(dims.begin(), Dim{1, 1, 1});
  const Dim row = dims[0];
  Dim rows{1, row.size, row.size};
  std::size_t walked = 1; // the other dimensions: one piece per index
  const auto has_pitch = [&](std::int64_t stride) { return stride >= row.size && stride * bytes <= kMaxPitchBytes; };
  if (dims.size() > 1 && has_pitch(dims[1].to) && has_pitch(dims[1].from)) { // else one piece per row
    rows = dims[1];
    walked = 2;
  }
  const std::int64_t count = to.elements() / (row.size * rows.size);
  for (std::int64_t number = 0; number < count; ++number) {
    std::int64_t rest = number, at_to = 0, at_from = 0;
    for (std::size_t dim = walked; dim < dims.size(); ++dim) {
      at_to += rest % dims[dim].size * dims[dim].to;
      at_from += rest % dims[dim].size * dims[dim].from;
      rest /= dims[dim].size;
    }
    pieces.push_back({at_to * bytes, at_from * bytes, static_cast<std::size_t>(row.size * bytes),
                      static_cast<std::size_t>(rows.size), static_cast<std::size_t>(rows.to * bytes),
                      static_cast<std::size_t>(rows.from * bytes)});
  }
  return pieces;
}

} // namespace triax::cuda
