// SPDX-License-Identifier: Apache-2.0
// The kernel set itself: names, counts, statistics, scratch, dry runs, and errors for missing operations.
#include <gmock/gmock.h>

#include "kernels/kit.hpp"
#include "support/operation_cases.hpp"

namespace triax::test {
namespace {

using ::testing::ElementsAre;

TEST(Names, AreThoseOfTheCalls) {
  EXPECT_EQ(name_of(Op::gemm), "gemm");
  EXPECT_EQ(name_of(Op::xent_bwd), "xent_bwd");
  EXPECT_EQ(name_of(Op::multi_adamw), "multi_adamw");
}

TEST(Counts, AreOfProductsAndViews) {
  const OpCall gemm = call_of(Gemm{.d = f32({2, 3, 5}), .a = f32({2, 3, 7}), .b = f32({2, 7, 5})});
  EXPECT_EQ(gemm.flops, 2 * 2 * 3 * 5 * 7);
  EXPECT_EQ(gemm.bytes, 4 * (30 + 42 + 70));
  const OpCall turned = call_of(Gemm{.d = f32({3, 5}), .a = f32({7, 3}), .b = f32({7, 5}), .transpose_a = true});
  EXPECT_EQ(turned.flops, 2 * 3 * 5 * 7);
  EXPECT_EQ(call_of(LinearFwd{.y = f32({4, 6}), .x = f32({4, 8}), .w = f32({6, 8}), .bias = f32({6})}).flops,
            2 * 4 * 6 * 8);
  EXPECT_EQ(call_of(LinearBwdInput{f32({4, 8}), f32({4, 6}), f32({6, 8})}).flops, 2 * 4 * 6 * 8);
  const auto wide = f32({4, 16});
  EXPECT_EQ(call_of(LinearBwdInput{wide, f32({4, 6}), f32({6, 8}), wide, Activation::silu_mul}).flops, 2 * 4 * 6 * 8);
  EXPECT_EQ(call_of(LinearBwdWeight{f32({6, 8}), {}, f32({4, 6}), f32({4, 8})}).flops, 2 * 4 * 6 * 8);
  const auto q = f32({4, 2, 6, 8}), k = f32({5, 2, 3, 8}), lse = f32({2, 6, 4});
  const double product = 2.0 * 2 * 6 * 4 * 5 * 8;
  EXPECT_EQ(call_of(AttentionFwd{.o = q, .lse = lse, .q = q, .k = k, .v = k}).flops, 2 * product);
  EXPECT_EQ(
      call_of(AttentionBwd{.dq = q, .dk = k, .dv = k, .dout = q, .q = q, .k = k, .v = k, .o = q, .lse = lse}).flops,
      5 * product);
  const OpCall add = call_of(Add{f32({3}), f32({3}), f32({3})});
  EXPECT_EQ(add.flops, 0);
  EXPECT_EQ(add.bytes, 36);
}

TEST(Counts, OfViewsThatAreUpdatedAreTwice) {
  const TensorView x = f32({3, 5}), bias = f32({5}), logits = f32({2, 7}), row = f32({2});
  EXPECT_EQ(call_of(Gemm{.d = x, .a = f32({3, 2}), .b = f32({2, 5}), .beta = 1}).bytes, 4 * (2 * 15 + 6 + 10));
  EXPECT_EQ(call_of(BiasBwd{bias, x}).bytes, 4 * (2 * 5 + 15));
  EXPECT_EQ(call_of(LinearBwdWeight{f32({6, 8}), {}, f32({4, 6}), f32({4, 8})}).bytes, 4 * (2 * 48 + 24 + 32));
  EXPECT_EQ(call_of(AdamW{.master = x, .gradient = x, .m = x, .v = x}).bytes, 4 * 15 * (2 * 3 + 1));
  EXPECT_EQ(call_of(Sgd{.master = x, .gradient = x, .velocity = x, .working = x}).bytes, 4 * 15 * (2 * 2 + 2));
  const TensorView table(nullptr, DType::f32, {9, 5}), dy(nullptr, DType::bf16, {2, 3, 5});
  EXPECT_EQ(call_of(EmbedBwd{table, dy, TensorView(nullptr, DType::i32, {2, 3}), 0, 9}).bytes,
            30 * 2 + 6 * 4 + 2 * 30 * 4);
  EXPECT_EQ(call_of(XentBwd{.logits = logits,
                            .max = row,
                            .sum_exp = row,
                            .targets = TensorView(nullptr, DType::i32, {2}),
                            .valid = 7})
                .bytes,
            4 * (2 * 14 + 2 + 2 + 2));
}

/// The reference set, its device and a stream; each call gets the scratch that it needs.
class Statistics : public ::testing::Test {
 protected:
  template <class Args>
  void run(const Args& args) {
    const OpCall call = call_of(args);
    scratch_.resize(set().scratch_bytes(call));
    set().issue(call, {*stream_, scratch_});
  }
  KernelSet& set() { return kernels_.set(); }
  Stream& stream() { return *stream_; }

 private:
  LoadedKernels kernels_{"kernels-reference"};
  std::unique_ptr<Stream> stream_ = kernels_.device().make_stream("test");
  std::vector<std::byte> scratch_;
};

TEST_F(Statistics, CountTheCallAndNotWhatItIsMadeOf) {
  Array x = random({4, 8}, 1), w = random({6, 8}, 2), bias = random({6}, 3), y = unwritten({4, 6});
  const LinearFwd args{.y = y, .x = x, .w = w, .bias = bias};
  run(args);
  run(args);
  EXPECT_EQ(set().calls(Op::linear_fwd), 2u);
  EXPECT_EQ(set().calls(Op::gemm), 0u);
  EXPECT_EQ(set().calls(Op::bias_add), 0u);
}

TEST_F(Statistics, NamedCallsCheckAndCount) {
  Array x = random({4, 8}, 1);
  set().add({x, x, x}, {stream(), {}});
  EXPECT_EQ(set().calls(Op::add), 1u);
  Array short_one = random({3}, 1);
  EXPECT_THROW(set().add({x, x, short_one}, {stream(), {}}), Error);
  EXPECT_EQ(set().calls(Op::add), 1u);
}

TEST_F(Statistics, TooLittleScratchIsRefused) {
  Array x = random({2, 1, 4}, 1), bias = random({4}, 2), y = unwritten({2, 1, 4});
  const BiasDropoutAdd args{y, x, bias, x, {}};
  EXPECT_EQ(set().scratch_bytes(call_of(args)), 256u);
  std::vector<std::byte> scratch(255);
  try {
    set().bias_dropout_add(args, {stream(), scratch});
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "bias_dropout_add: the scratch memory has 255 bytes, but 256 are needed");
  }
}

TEST_F(Statistics, AttentionTakesScratchForTheScoresOfOneSampleAndDelta) {
  const auto q = f32({16, 3, 2, 8}), lse = f32({3, 2, 16});
  const AttentionFwd forward{.o = q, .lse = lse, .q = q, .k = q, .v = q};
  const AttentionBwd backward{.dq = q, .dk = q, .dv = q, .dout = q, .q = q, .k = q, .v = q, .o = q, .lse = lse};
  EXPECT_EQ(set().scratch_bytes(call_of(forward)), 2u * 16 * 16 * 4);
  EXPECT_EQ(set().scratch_bytes(call_of(backward)), 2u * 2 * 16 * 16 * 4 + Arena::aligned(3 * 2 * 16 * 4));
}

TEST_F(Statistics, WaitsForTheStream) {
  struct Never final : HostTask {
    int left = 3;
    bool advance() noexcept override { return --left == 0; }
  } task;
  stream().post(task);
  Array x = random({4}, 1);
  run(Add{x, x, x});
  EXPECT_EQ(task.left, 0);
}

/// A set whose gemm needs scratch, refuses K above 4, and records the calls of prepare().
class Demanding final : public KernelSet {
 public:
  DeviceKind device_kind() const noexcept override { return DeviceKind::host; }
  Refusals supports(const KernelRequest&) const override { return {}; }
  void start(Device&) override {}
  Refusals supports(const OpCall& call) const override {
    if (call.op == Op::gemm && call.as<Gemm>().a.size(1) > 4)
      return make_refusal(ErrorCode::kUnsupported, {}, "K above 4");
    return KernelSet::supports(call);
  }
  std::size_t scratch_bytes(const OpCall& call) const override {
    return call.op == Op::gemm ? 1000 : KernelSet::scratch_bytes(call);
  }
  void prepare(const OpCall& call) override {
    prepared.emplace_back(name_of(call.op));
    KernelSet::prepare(call);
  }
  std::vector<std::string> prepared;
  std::size_t scratch_of_gemm = 0;

 protected:
  void do_gemm(const Gemm&, const OpContext& context) override { scratch_of_gemm = context.scratch.size(); }
};

struct Plan {
  Demanding real;
  DryRunKernels plan{real};
  std::unique_ptr<Device> device = make_dry_run_device(DeviceKind::host);
  std::unique_ptr<Stream> stream = device->make_stream("plan");
  OpContext context{*stream, {}};
};

TEST(DryRun, AsksTheRealSetForWhatFusedCallsAreMadeOf) {
  Plan p;
  p.plan.linear_fwd({.y = f32({4, 6}), .x = f32({4, 3}), .w = f32({6, 3}), .bias = f32({6})}, p.context);
  EXPECT_THAT(p.real.prepared, ElementsAre("linear_fwd", "gemm", "bias_add"));
  EXPECT_EQ(p.plan.scratch_needed(), 1000u);
  p.plan.bias_dropout_add({f32({9, 1, 64}), f32({9, 1, 64}), f32({64}), f32({9, 1, 64}), {}}, p.context);
  EXPECT_EQ(p.plan.scratch_needed(), 9u * 64 * 4);
  EXPECT_TRUE(p.plan.refusals().empty());
  EXPECT_EQ(p.real.calls(Op::linear_fwd), 0u);
  EXPECT_EQ(p.plan.calls(Op::linear_fwd), 1u);
}

TEST(DryRun, AsksOnceForWhatIsTheSameForEverySample) {
  Plan p;
  const std::int64_t samples = 3;
  const TensorView x = f32({4, samples, 2, 4}), lse = f32({samples, 2, 4});
  p.plan.attention_fwd({.o = x, .lse = lse, .q = x, .k = x, .v = x}, p.context);
  EXPECT_THAT(p.real.prepared, ElementsAre("attention_fwd", "gemm", "softmax_fwd", "gemm"));
}

TEST(DryRun, ListsEachRefusalOnce) {
  Plan p;
  for (const std::int64_t k : {5, 6}) {
    p.plan.linear_fwd({.y = f32({4, 6}), .x = f32({4, k}), .w = f32({6, k})}, p.context);
  }
  ASSERT_EQ(p.plan.refusals().size(), 1u);
  EXPECT_EQ(p.plan.refusals()[0].message, "K above 4");
  EXPECT_THAT(p.real.prepared, ElementsAre());
  EXPECT_EQ(p.plan.scratch_needed(), 0u);
}

// Every case of every operation can be planned: the defaults of fused operations expand without memory.
TEST(DryRun, NeedsNoMemory) {
  LoadedKernels reference("kernels-reference");
  const auto device = make_dry_run_device(DeviceKind::host);
  const auto stream = device->make_stream("plan");
  DryRunKernels plan(reference.set());
  for (const OperationCase& one : fused_cases(DType::f32)) {
    CaseViews views;
    for (const CaseTensor& t : one.tensors) {
      const DType type = t.kind == Kind::own ? t.dtype : DType::f32;
      views.set(t.name, TensorView(nullptr, type, t.shape));
    }
    one.build(views, UseCall([&](const OpCall& call) { plan.issue(call, {*stream, {}}); }));
  }
  EXPECT_TRUE(plan.refusals().empty());
  EXPECT_GT(plan.scratch_needed(), 0u);
}

TEST(Defaults, GiveTheRestOfTheScratchToPrimitives) {
  Demanding set;
  const auto device = make_host_device();
  const auto stream = device->make_stream("test");
  std::vector<std::byte> scratch(1200);
  set.linear_bwd_input({f32({2, 3}), f32({2, 4}), f32({4, 3})}, {*stream, scratch});
  EXPECT_EQ(set.scratch_of_gemm, 1200u);
}

TEST(Defaults, NameTheSetThatLacksAnOperation) {
  Demanding set;
  const auto device = make_host_device();
  const auto stream = device->make_stream("test");
  try {
    set.add({f32({3}), f32({3}), f32({3})}, {*stream, {}});
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "test_kernels does not implement add"); // name of the library, such as a plugin
    EXPECT_EQ(error.hint(), "override do_add in its kernel set, or choose a set that has it");
  }
}

TEST_F(Statistics, ReferenceRefusesNarrowTypes) {
  EXPECT_TRUE(set().supports(KernelRequest{DType::f32, DType::f32}).empty());
  EXPECT_TRUE(set().supports(KernelRequest{DType::f64, DType::f64}).empty());
  const Refusals mixed = set().supports(KernelRequest{DType::bf16, DType::f32});
  EXPECT_EQ(mixed.front().message,
            "kernels-reference computes in fp32 or fp64 throughout; bf16 with master weights in fp32 was requested");
  TensorView half(nullptr, DType::bf16, {3});
  EXPECT_THROW(run(Add{half, half, half}), Error);
}

} // namespace
} // namespace triax::test
