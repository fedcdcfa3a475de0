// SPDX-License-Identifier: Apache-2.0
// optim-muon on ranks that have parts of matrices: tensor ranks have some rows or columns, and with optimizer.shard
// data ranks update some elements. In double, on kernels-reference and comm-local.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <vector>

#include "sample_values.hpp"
#include "support/ranks.hpp"
#include "triax/optimizer.hpp"
#include "triax/parallel.hpp"

namespace triax {
namespace {

constexpr int kSteps = 3;

/// How ranks divide a parameter.
struct Division {
  int tensor = 1, dim = 0; // tensor ranks have ranges of this dimension
  int data = 1;            // data ranks own `part` elements each, the last ones the rest or nothing
  std::int64_t part = 0;   // 0: equal parts
  bool sharded = false;    // and update no others
};

/// The parameter on one rank, and the elements of the global tensor that it updates.
class DividedWeight {
 public:
  DividedWeight(const Shape& global, const Division& by, const Layout& layout, int rank)
      : spec_(replicated("weight", global, {}, true)) {
    if (by.tensor > 1) cut(by, layout.coordinate(rank, kTensorAxis));
    list_elements();
    const auto stored = static_cast<std::int64_t>(elements_.size());
    const std::int64_t part = by.part > 0 ? by.part : (stored + by.data - 1) / by.data,
                       data = layout.coordinate(rank, kDataAxis);
    owned_first_ = std::min(stored, data * part);
    owned_elements_ = std::min(stored, (data + 1) * part) - owned_first_;
    if (by.sharded) {
      first_ = owned_first_;
      elements_ = {elements_.begin() + first_, elements_.begin() + first_ + owned_elements_};
    }
    master_ = at_elements(test::sample_values(static_cast<std::size_t>(global.elements()), 1));
    gradient_ = m_ = v_ = std::vector<double>(master_.size());
    state_ = {view(m_), view(v_)};
    members_ = by.data;
    sharded_ = by.sharded;
  }

  ParameterShard shard() {
    return {.name = "block 0/weight",
            .spec = &spec_,
            .first = first_,
            .master = view(master_),
            .gradient = view(gradient_),
            .working = {},
            .state = state_,
            .group = members_ > 1 ? std::string(kDataAxis) : std::string(),
            .members = members_,
            .owned_first = members_ > 1 ? owned_first_ : 0,
            .owned_elements = members_ > 1 ? owned_elements_ : 0,
            .sharded = sharded_};
  }
  void set_gradient(int step) {
    const auto count = static_cast<std::size_t>(spec_.global.elements());
    std::ranges::copy(at_elements(test::sample_values(count, 1 + step)), gradient_.begin());
  }
  /// Ranks that have the same element must have the same bits.
  void put(std::vector<double>& whole) const {
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      double& held = whole[elements_[i]];
      EXPECT_TRUE(std::isnan(held) || held == master_[i]) << "element " << elements_[i];
      held = master_[i];
    }
  }

 private:
  /// Ranges of equal size; the last ranks may have fewer elements, or none.
  void cut(const Division& by, std::int64_t tensor_rank) {
    const std::int64_t size = spec_.global[by.dim], each = (size + by.tensor - 1) / by.tensor;
    const std::int64_t begin = std::min(size, tensor_rank * each);
    spec_.local[by.dim] = each;
    spec_.cuts = {{std::string(kTensorAxis), by.dim, begin, std::min(size, begin + each)}};
  }
  void list_elements() {
    for (std::int64_t element = 0; element < spec_.global.elements(); ++element) {
      std::int64_t rest = element;
      bool is_here = true;
      for (int dim = spec_.global.rank() - 1; dim >= 0; --dim) {
        const std::int64_t at = rest % spec_.global[dim];
        rest /= spec_.global[dim];
        const Cut* const cut = spec_.cut_along(dim);
        is_here = is_here && (!cut || (cut->begin <= at && at < cut->end));
      }
      if (is_here) elements_.push_back(static_cast<std::size_t>(element));
    }
  }
  std::vector<double> at_elements(const std::vector<double>& whole) const {
    std::vector<double> out;
    for (const std::size_t element : elements_) out.push_back(whole[element]);
    return out;
  }
  static TensorView view(std::vector<double>& of) {
    return {of.data(), DType::f64, Shape{static_cast<std::int64_t>(of.size())}};
  }

  ParamSpec spec_;
  std::vector<std::size_t> elements_; // of the global tensor, as stored
  std::int64_t first_ = 0, owned_first_ = 0, owned_elements_ = 0;
  int members_ = 1;
  bool sharded_ = false;
  std::vector<double> master_, gradient_, m_, v_;
  std::vector<TensorView> state_;
};

/// The global tensor after some steps.
std::vector<double> stepped(const Shape& global, const Division& by = {}) {
  const Layout layout = Layout::ptd(1, by.tensor, by.data);
  const plugin::Library& library = plugin::load(test::plugin_file("optim-muon"), Optimizer::kKind);
  Options options;
  test::set_defaults(library, options);
  std::vector<double> out(static_cast<std::size_t>(global.elements()), std::nan(""));
  std::mutex mutex;
  test::run_ranks(layout, [&](test::Rank& rank) {
    const auto muon =
        plugin::create<Optimizer>(library, PluginContext{options, null_log(), rank.layout(), rank.index()});
    KernelSet& kernels = rank.kernels("kernels-reference");
    const Groups groups = rank.join_axes();
    DividedWeight weight(global, by, layout, rank.index());
    const ParameterShard shard = weight.shard();
    muon->prepare({&shard, 1});
    std::vector<double> scratch(muon->scratch_bytes({&shard, 1}) / sizeof(double), std::nan(""));
    for (int step = 1; step <= kSteps; ++step) {
      weight.set_gradient(step);
      const StepScalars scalars{.lr = 0.125, .clip = 0.5, .step = step};
      muon->step({&shard, 1},
                 {.scalars = &scalars,
                  .weight_decay = 0.25,
                  .groups = groups,
                  .scratch = std::as_writable_bytes(std::span(scratch)),
                  .op = {rank.stream(), {}}},
                 kernels);
    }
    const std::lock_guard lock(mutex);
    weight.put(out);
  });
  return out;
}

void expect_rounding(const Shape& global, const Division& by) {
  const std::vector<double> one = stepped(global), other = stepped(global, by);
  for (std::size_t i = 0; i < one.size(); ++i)
    EXPECT_NEAR(other[i], one[i], 1e-10) << to_text(global) << ", dimension " << by.dim << ", element " << i;
}

TEST(MuonRanks, HaveRowsOrColumnsOfAMatrix) {
  for (const Shape& global : {Shape{6, 4}, Shape{4, 6}, Shape{6, 6}, Shape{12, 2}})
    for (const int dim : {0, 1})
      for (const int tensor : {2, 3})
        if (global[dim] % tensor == 0) expect_rounding(global, {.tensor = tensor, .dim = dim});
}

/// Ranks of the last case have other matrices: there is nothing to add.
TEST(MuonRanks, HavePartsOfFusedMatrices) {
  expect_rounding({3, 4, 6}, {.tensor = 2, .dim = 1});
  expect_rounding({3, 4, 6}, {.tensor = 3, .dim = 2});
  EXPECT_EQ(stepped({4, 3, 5}, {.tensor = 2, .dim = 0}), stepped({4, 3, 5}));
}

/// The last rank has one row, or none.
TEST(MuonRanks, HaveFewerRowsThanTheyStore) {
  expect_rounding({5, 4}, {.tensor = 2});
  expect_rounding({6, 4}, {.tensor = 4});
  expect_rounding({9, 4}, {.tensor = 4});
}

/// Not a bit changes, wherever parts begin, also where a rank has no element.
TEST(MuonRanks, UpdateTheirPartsWithTheBitsOfTheWhole) {
  for (const Shape& global : {Shape{5, 7}, Shape{3, 2, 4}})
    for (const std::int64_t part : {0, 17, 30, 100}) {
      const std::vector<double> whole = stepped(global, {.data = 3, .part = part});
      EXPECT_EQ(whole, stepped(global));
      EXPECT_EQ(stepped(global, {.data = 3, .part = part, .sharded = true}), whole) << part;
    }
}

TEST(MuonRanks, UpdatePartsOfRowsAndColumns) {
  for (const int dim : {0, 1})
    for (const std::int64_t part : {0, 13, 100}) {
      const Division by{.tensor = 2, .dim = dim, .data = 2, .part = part};
      Division divided = by;
      divided.sharded = true;
      EXPECT_EQ(stepped({6, 8}, divided), stepped({6, 8}, by));
    }
}

} // namespace
} // namespace triax
