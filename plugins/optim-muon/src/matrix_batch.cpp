// SPDX-License-Identifier: Apache-2.0
#include "matrix_batch.hpp"

#include <triax/error.hpp>
#include <triax/text.hpp>

namespace triax::optim_muon {

namespace {

/// Elements along a dimension, as stored without padding.
std::int64_t stored_size(const ParamSpec& spec, int dim) {
  const Cut* const cut = spec.cut_along(dim);
  return cut ? cut->end - cut->begin : spec.local[dim];
}

/// The axis that divides the dimension; empty if each rank has all of it.
std::string_view dividing_axis(const ParamSpec& spec, int dim, const Layout& layout) {
  const Cut* const cut = spec.cut_along(dim);
  return cut && layout.size(cut->axis) > 1 ? std::string_view(cut->axis) : std::string_view();
}

} // namespace

bool has_matrices(const ParamSpec& spec) {
  return spec.decay && spec.global.rank() >= 2 && spec.global[-1] > 1 && spec.global[-2] > 1;
}

MatrixBatch matrices_of(const ParamSpec& spec, const Layout& layout) {
  const int of_rows = spec.global.rank() - 2, of_columns = of_rows + 1;
  MatrixBatch out{.rows = stored_size(spec, of_rows),
                  .columns = stored_size(spec, of_columns),
                  .global_rows = spec.global[of_rows],
                  .global_columns = spec.global[of_columns]};
  for (int dim = 0; dim < of_rows; ++dim) out.count *= stored_size(spec, dim);
  const std::string_view of_row_parts = dividing_axis(spec, of_rows, layout),
                         of_column_parts = dividing_axis(spec, of_columns, layout);
  if (!of_row_parts.empty() && !of_column_parts.empty())
    throw Error(text("optim-muon: {} is divided by rows over {} and by columns over {}; a matrix can be divided along "
                     "one dimension only",
                     spec.name, of_row_parts, of_column_parts),
                {}, text("set parallel.{} or parallel.{} to 1, or use optim-adamw", of_row_parts, of_column_parts));
  out.adds_rows = of_row_parts.empty() ? of_column_parts.empty() && out.rows > out.columns : true;
  out.axis = of_row_parts.empty() ? of_column_parts : of_row_parts;
  return out;
}

} // namespace triax::optim_muon
