// SPDX-License-Identifier: Apache-2.0
#include "fixed_parameters.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "model/model_run.hpp"
#include "triax/parallel.hpp"
#include "triax/random.hpp"

namespace triax::conformance {

namespace {

struct FixedParameter {
  const char* name;
  std::int64_t rows, columns;
  bool decay;
  int cut = -1;            // the dimension that tensor ranks divide; -1: none
  bool is_partial = false; // tensor ranks have partial gradients
  std::int64_t elements() const { return rows * columns; }
  ParamSpec spec() const { return replicated(name, {rows, columns}, {}, decay); }
};

/// The last has as many elements as the first.
constexpr FixedParameter kParameters[] = {
    {"block 0/weight", 7, 13, true, 0},   {"block 0/bias", 1, 13, false},           {"block 0/scale", 1, 1, false},
    {"block 1/weight", 33, 126, true, 1}, {"block 1/bias", 1, 91, false, -1, true},
};

/// Equal ranges as stored; the last may have fewer elements.
void cut_over_tensor_ranks(ParamSpec& spec, int dim, int ranks, int tensor_rank) {
  const std::int64_t size = spec.global[dim], each = (size + ranks - 1) / ranks;
  const std::int64_t begin = std::min(size, tensor_rank * each);
  spec.local[dim] = each;
  spec.cuts = {{std::string(kTensorAxis), dim, begin, std::min(size, begin + each)}};
}

/// Without padding, which is at the end.
std::int64_t stored_elements(const ParamSpec& spec) {
  std::int64_t out = 1;
  for (int dim = 0; dim < spec.local.rank(); ++dim) {
    const Cut* const cut = spec.cut_along(dim);
    out *= cut ? cut->end - cut->begin : spec.local[dim];
  }
  return out;
}

/// The axes of the ranks whose gradients of a parameter the engine adds.
std::vector<std::string> group_axes(const ParamSpec& spec, const Layout& layout) {
  std::vector<std::string> out;
  for (const Axis& axis : layout.axes()) {
    const bool is_partial = std::ranges::find(spec.partial, axis.name) != spec.partial.end();
    if (axis.size > 1 && (is_partial || axis.divides == Divides::samples)) out.push_back(axis.name);
  }
  return out;
}

/// Contiguous parts with an odd number of elements; the last ranks have fewer elements, or none.
void own_a_part(Part& part, const Layout& layout, int rank) {
  const std::vector<std::string> axes = group_axes(part.spec, layout);
  if (axes.empty()) return;
  part.group = Layout::product_name(axes);
  for (const std::string& axis : axes) part.members *= layout.size(axis);
  const std::int64_t each = ((part.elements + part.members - 1) / part.members) | 1;
  const std::int64_t from = std::min(part.elements, each * layout.group_rank(rank, axes));
  part.owned_elements = std::min(part.elements, from + each) - from;
  part.owned_first = part.owned_elements == 0 ? 0 : from;
}

void keep_owned_elements(Part& part) {
  part.sharded = true;
  part.first = part.owned_first;
  part.elements = part.owned_elements;
}

} // namespace

std::int64_t Part::global(std::int64_t local) const {
  return global_element(spec, first + local);
}

std::vector<Part> whole_parameters() {
  std::vector<Part> out;
  for (std::size_t i = 0; i < std::size(kParameters); ++i)
    out.push_back({.parameter = i, .spec = kParameters[i].spec(), .elements = kParameters[i].elements()});
  return out;
}

std::vector<Part> parts_of_shard(int index, int count) {
  std::vector<Part> out;
  for (const Part& whole : whole_parameters()) {
    const auto cut = [&](int at) {
      return at == 0 ? 0 : at == count ? whole.elements : std::min(whole.elements, (whole.elements * at / count) | 1);
    };
    if (cut(index) == cut(index + 1)) continue;
    out.push_back(whole);
    out.back().first = cut(index);
    out.back().elements = cut(index + 1) - cut(index);
  }
  return out;
}

std::string to_text(const RankDivision& division) {
  std::string out;
  if (division.tensor > 1) out = text("{} tensor ranks", division.tensor);
  if (division.data > 1) out += text("{}{} data ranks", out.empty() ? "" : ", ", division.data);
  return division.sharded ? out + " with optimizer.shard" : out;
}

std::vector<Part> parts_of_rank(const RankDivision& division, int rank) {
  const Layout layout = division.layout();
  std::vector<Part> out = whole_parameters();
  for (Part& part : out) {
    const FixedParameter& of = kParameters[part.parameter];
    if (division.tensor > 1 && of.cut >= 0)
      cut_over_tensor_ranks(part.spec, of.cut, division.tensor, layout.coordinate(rank, kTensorAxis));
    if (division.tensor > 1 && of.is_partial) part.spec.partial = {std::string(kTensorAxis)};
    part.elements = stored_elements(part.spec);
    own_a_part(part, layout, rank);
    if (division.sharded) keep_owned_elements(part);
  }
  return out;
}

std::vector<std::vector<std::string>> axes_of_groups(const Layout& layout) {
  std::vector<std::vector<std::string>> out;
  std::vector<std::string> all;
  for (const Axis& axis : layout.axes()) {
    if (axis.size == 1) continue;
    out.push_back({axis.name});
    all.push_back(axis.name);
  }
  if (all.size() > 1) out.push_back(all);
  return out;
}

double fixed_value(std::uint32_t site, std::size_t parameter, std::int64_t element) {
  constexpr PhiloxKey kKey = philox_key(5, RandomPurpose::test);
  const PhiloxBlock block =
      philox_at(kKey, static_cast<std::uint64_t>(element), site, static_cast<std::uint32_t>(parameter));
  return std::ldexp(2 * (static_cast<double>(block[0]) * 0x1p-32) - 1, -static_cast<int>(block[1] % 8));
}

} // namespace triax::conformance
