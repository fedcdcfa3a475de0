// SPDX-License-Identifier: Apache-2.0
// The reference compared with itself in f64 on the cases for other sets, and faults that the comparison must find.
#include <gtest/gtest.h>

#include <set>

#include "support/loaded_kernels.hpp"
#include "support/operation_cases.hpp"

namespace triax::test {
namespace {

TEST(OperationCases, CoverEveryOperation) {
  LoadedKernels reference("kernels-reference");
  for (const OperationCase& one : operation_cases(DType::f64)) {
    run_case(reference.set(), reference.device(), one, DType::f64);
  }
#define TRIAX_OP(Args, name) EXPECT_GT(reference.set().stats(Op::name).calls, 0u) << #name;
  TRIAX_OPERATIONS(TRIAX_OP)
#undef TRIAX_OP
}

TEST(OperationCases, HaveNamesOfTheirOwn) {
  std::set<std::string> seen;
  for (const OperationCase& one : operation_cases(DType::f32)) EXPECT_TRUE(seen.insert(one.name).second) << one.name;
}

TEST(OperationCases, ReferenceInF32AgreesWithF64) {
  LoadedKernels reference("kernels-reference");
  for (const OperationCase& one : operation_cases(DType::f32)) {
    EXPECT_EQ(compare(reference.set(), reference.device(), reference.set(), one, 2e-6), "") << one.name;
  }
}

/// The reference with one fault in its add.
class Faulty final : public KernelSet {
 public:
  enum class Fault { none, wrong_value, skips_last, writes_past, writes_input };
  explicit Faulty(Fault fault) : fault_(fault) {}
  DeviceKind device_kind() const noexcept override { return DeviceKind::host; }
  Refusals supports(const KernelRequest&) const override { return {}; }
  void start(Device&) override {}

 protected:
  void do_add(const Add& args, const OpContext&) override {
    const auto *a = args.a.as<const float>(), *b = args.b.as<const float>();
    auto* y = args.y.as<float>();
    const std::int64_t n = args.y.elements() - (fault_ == Fault::skips_last ? 1 : 0);
    for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
    if (fault_ == Fault::wrong_value) y[0] += 1e-3f;
    if (fault_ == Fault::writes_past) y[args.y.elements()] = 0;
    if (fault_ == Fault::writes_input) args.b.as<float>()[0] = 0;
  }

 private:
  Fault fault_;
};

std::string compared(Faulty::Fault fault) {
  LoadedKernels reference("kernels-reference");
  Faulty tested(fault);
  const OperationCase add{"add/small",
                          DType::f32,
                          {{.name = "a", .shape = {3, 4}},
                           {.name = "b", .shape = {3, 4}},
                           {.name = "y", .role = Role::out, .shape = {3, 4}}},
                          [](const CaseViews& v, const UseCall& use) {
                            use(Add{v["y"], v["a"], v["b"]});
                          }};
  try {
    return compare(tested, reference.device(), reference.set(), add, 1e-5);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(OperationCases, ComparisonFindsFaults) {
  EXPECT_EQ(compared(Faulty::Fault::none), "");
  EXPECT_EQ(compared(Faulty::Fault::wrong_value).substr(0, 25), "y: 1 of 12 elements diffe");
  EXPECT_NE(compared(Faulty::Fault::skips_last).find("; at 11 got "), std::string::npos)
      << compared(Faulty::Fault::skips_last);
  EXPECT_EQ(compared(Faulty::Fault::writes_past), "add/small: y was written beside its view");
  EXPECT_EQ(compared(Faulty::Fault::writes_input), "add/small: b is an input and was written");
}

} // namespace
} // namespace triax::test
