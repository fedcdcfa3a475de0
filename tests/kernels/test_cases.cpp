// SPDX-License-Identifier: Apache-2.0
// The cases of the conformance suite: they cover every operation, and a comparison with the formulas finds faults.
#include <gtest/gtest.h>

#include <set>

#include "kernels/formulas.hpp"
#include "support/operation_cases.hpp"
#include "triax/half.hpp"

namespace triax::test {
namespace {

using conformance::Formulas;

TEST(OperationCases, CoverEveryOperationInEveryType) {
  for (const DType type : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    std::set<Op> covered;
    for (const OperationCase& one : operation_cases(type)) covered.insert(op_of(one));
#define TRIAX_OP(Args, name) EXPECT_TRUE(covered.contains(Op::name)) << #name << ", " << name_of(type);
    TRIAX_OPERATIONS(TRIAX_OP)
#undef TRIAX_OP
  }
}

TEST(OperationCases, HaveNamesOfTheirOwn) {
  std::set<std::string> seen;
  for (const OperationCase& one : operation_cases(DType::bf16)) EXPECT_TRUE(seen.insert(one.name).second) << one.name;
}

/// The formulas keep the rules of a kernel set: they write their outputs, and nothing else.
TEST(OperationCases, RunOnTheFormulas) {
  Formulas formulas;
  const auto host = make_host_device();
  for (const OperationCase& one : operation_cases(DType::f64))
    EXPECT_EQ(compare(formulas, *host, one, 0), "") << one.name;
}

/// A set with one fault in its add.
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
  const auto device = make_host_device();
  Faulty tested(fault);
  const OperationCase add{"add/small",
                          DType::f32,
                          {in("a", {3, 4}), in("b", {3, 4}), out("y", {3, 4})},
                          [](const CaseViews& v, const UseCall& use) {
                            use(Add{v["y"], v["a"], v["b"]});
                          }};
  try {
    return compare(tested, *device, add);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(OperationCases, ComparisonFindsFaults) {
  EXPECT_EQ(compared(Faulty::Fault::none), "");
  EXPECT_EQ(compared(Faulty::Fault::wrong_value).substr(0, 25), "y: 1 of 12 elements diffe");
  EXPECT_NE(compared(Faulty::Fault::skips_last).find("; element 11 is "), std::string::npos)
      << compared(Faulty::Fault::skips_last);
  EXPECT_EQ(compared(Faulty::Fault::writes_past), "add/small: y was written beside its view");
  EXPECT_EQ(compared(Faulty::Fault::writes_input), "add/small: b is an input and was written");
}

/// Master weights that are rounded to the type of the working weights at each step would hide small updates.
TEST(OperationCases, MasterWeightsArePreciseIn16Bits) {
  for (const OperationCase& one : operation_cases(DType::bf16)) {
    if (!one.name.ends_with("adamw/taken") && !one.name.ends_with("sgd/momentum taken")) continue;
    const CaseResults want = formula_results(one);
    CaseResults got = want;
    for (double& value : got.at("working")) value = static_cast<double>(Bf16(value));
    EXPECT_EQ(differences(one, got, want, tolerance_of(one)), "") << one.name;
    for (double& value : got.at("p")) value = static_cast<double>(Bf16(value));
    EXPECT_EQ(differences(one, got, want, tolerance_of(one)).substr(0, 3), "p: ") << one.name;
  }
}

} // namespace
} // namespace triax::test
