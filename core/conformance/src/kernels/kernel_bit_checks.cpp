// SPDX-License-Identifier: Apache-2.0
// Equal bits: in repeated calls, other objects, at other addresses, with other threads, in the order of the stream.
#include <algorithm>
#include <string>
#include <vector>

#include "kernel_check_tables.hpp"
#include "triax/cheap_recompute.hpp"
#include "triax/conformance/case_builder.hpp"

namespace triax::conformance {

namespace {

using cases::CaseResults;
using cases::CaseSetup;
using cases::OperationCase;

/// Small cases, and sums over more elements than one block of a kernel handles.
std::vector<OperationCase> repeated_cases(const KernelSubject& subject) {
  std::vector<OperationCase> out;
  for_small_cases(subject, [&](const OperationCase& one) { out.push_back(one); });
  if (std::ranges::find(subject.answers.types, DType::f32) != subject.answers.types.end())
    for (OperationCase& one : cases::large_sum_cases()) out.push_back(std::move(one));
  return out;
}

/// The second object computes in the reverse order: results must not depend on earlier calls.
void calls_give_equal_bits(const KernelSubject& subject, Report& report) {
  std::vector<OperationCase> all = repeated_cases(subject);
  std::vector<CaseResults> first;
  {
    KernelSession session(subject.kernels());
    for (const OperationCase& one : all) {
      first.push_back(session.run(one).results);
      expect_equal_bits(report, text("{}, called again", to_text(one)), session.run(one).results, first.back());
    }
  }
  KernelSession other(subject.kernels());
  for (std::size_t i = all.size(); i-- > 0;)
    expect_equal_bits(report, text("{}, in another object, after other calls", to_text(all[i])),
                      other.run(all[i]).results, first[i]);
}

constexpr std::int64_t kAlignedShift = 256; // elements: a multiple of 256 bytes in every type

void addresses_give_equal_bits(const KernelSubject& subject, Report& report) {
  KernelSession session(subject.kernels());
  CaseSetup elsewhere;
  elsewhere.shift = kAlignedShift;
  for_cases(subject, CaseSize::small, [&](const OperationCase& one) {
    expect_equal_bits(report, text("{}, at an address {} elements higher", to_text(one), kAlignedShift),
                      session.run(one, elsewhere).results, session.run(one).results);
  });
}

bool is_elementwise(Op op) {
  switch (op) {
    case Op::bias_add:
    case Op::add:
    case Op::dropout:
    case Op::act_fwd:
    case Op::act_bwd:
    case Op::rope:
    case Op::embed_fwd:
    case Op::adamw:
    case Op::sgd:
    case Op::bias_dropout_add:
    case Op::multi_adamw:
      return true;
    default:
      return false;
  }
}

/// A shift moves elements between the vectors and the tail of a loop.
void elements_have_their_bits_anywhere(const KernelSubject& subject, Report& report) {
  KernelSession session(subject.kernels());
  for_cases(subject, CaseSize::small, [&](const OperationCase& one) {
    if (!is_elementwise(cases::op_of(one))) return;
    const CaseResults aligned = session.run(one).results;
    for (const std::int64_t shift : {1, 3, 13}) {
      CaseSetup setup;
      setup.shift = shift;
      expect_equal_bits(report, text("{}, {} elements after a multiple of 256 bytes", to_text(one), shift),
                        session.run(one, setup).results, aligned);
    }
  });
}

void threads_give_equal_bits(const KernelSubject& subject, Report& report) {
  KernelSession alone(subject.with_threads(1)), two(subject.with_threads(2)), three(subject.with_threads(3)),
      four(subject.with_threads(4));
  for_cases(subject, CaseSize::any, [&](const OperationCase& one) {
    const CaseResults want = alone.run(one).results;
    int threads = 2;
    for (KernelSession* const session : {&two, &three, &four})
      expect_equal_bits(report, text("{}, with {} threads instead of 1", to_text(one), threads++),
                        session->run(one).results, want);
  });
}

/// Earlier work of the stream writes the inputs, and runs only when the calls are already enqueued. Each case runs once
/// before that, so that its modules are loaded.
void streams_keep_their_order(const KernelSubject& subject, Report& report) {
  KernelSession session(subject.kernels());
  CaseSetup late;
  late.late_inputs = true;
  for_small_cases(subject, [&](const OperationCase& one) {
    const CaseResults want = session.run(one).results;
    expect_equal_bits(report, text("{}, if earlier work of the stream writes the inputs", to_text(one)),
                      session.run(one, late).results, want);
  });
}

constexpr std::int64_t kRepeatedRows = 10;

void add_repeated_layers(cases::CaseList& list, std::int64_t outputs, std::int64_t inputs) {
  using namespace cases;
  const Shape x{kRepeatedRows, inputs}, y{kRepeatedRows, outputs}, wide{kRepeatedRows, 2 * outputs};
  list.add(text("linear_fwd/gelu {}", outputs),
           {in("x", x), in("w", {outputs, inputs}), in("b", {outputs}), out("z", y), out("y", y), out("y again", y)},
           [](const CaseViews& v, const UseCall& use) {
             use(LinearFwd{v["y"], v["z"], v["x"], v["w"], v["b"], Activation::gelu_tanh});
             use(ActFwd{Activation::gelu_tanh, v["y again"], v["z"]});
           });
  list.add(text("linear_fwd/silu_mul {}", outputs),
           {in("x", x), in("w", {2 * outputs, inputs}), out("z", wide), out("y", y), out("y again", y)},
           [](const CaseViews& v, const UseCall& use) {
             use(LinearFwd{v["y"], v["z"], v["x"], v["w"], {}, Activation::silu_mul});
             use(ActFwd{Activation::silu_mul, v["y again"], v["z"]});
           });
}

void add_repeated_norms(cases::CaseList& list, std::int64_t n) {
  using namespace cases;
  const Shape stream{kRepeatedRows / 2, 2, n}, rows{kRepeatedRows};
  const Tensors of_norm = {in("x", stream),
                           in("b", {n}),
                           in("r", stream),
                           in("w", {n}),
                           in("nb", {n}),
                           samples(2),
                           out("y", stream),
                           out("normed", stream),
                           out("normed again", stream),
                           statistic_out("mean", rows),
                           statistic_out("mean again", rows),
                           statistic_out("rstd", rows),
                           statistic_out("rstd again", rows)};
  for (const NormKind kind : {NormKind::layer, NormKind::rms})
    list.add(text("bias_dropout_add_norm/{} {}", kind == NormKind::layer ? "layer" : "rms", n), of_norm,
             [kind, n](const CaseViews& v, const UseCall& use) {
               const auto of_layer = [&](const char* name) { return kind == NormKind::layer ? v[name] : TensorView(); };
               const Drop drop{.p = 0.3f, .key = kCaseKey, .site = 18, .samples = v["samples"], .rows = 5, .width = n};
               use(BiasDropoutAddNorm{v["y"], v["normed"], of_layer("mean"), v["rstd"], v["x"], v["b"], v["r"], drop,
                                      kind, v["w"], of_layer("nb"), 1e-5});
               use(NormFwd{kind, v["normed again"], v["y"], v["w"], of_layer("nb"), of_layer("mean again"),
                           v["rstd again"], 1e-5});
             });
}

/// Fused operations, each with the primitive that repeats what it computes from its own output: "y again" must be "y".
std::vector<OperationCase> repeat_cases(DType dtype) {
  cases::CaseList list(dtype);
  add_repeated_layers(list, 18, 7);
  add_repeated_layers(list, 130, 16); // products on GPUs may need rows of 16 bytes or a multiple
  add_repeated_layers(list, 768, 24);
  for (const std::int64_t n : {18, 130, 768}) add_repeated_norms(list, n);
  return list.take();
}

/// Whether the set refuses one of the calls, or names one in RepeatLimits.
bool is_refused(KernelSet& set, const OperationCase& one) {
  bool out = false;
  const auto* const limits = find_extension<RepeatLimits>(set);
  cases::plan_case(one, [&](const OpCall& call) {
    out = out || !set.supports(call).empty() || (limits && !limits->repeats(call).empty());
  });
  return out;
}

std::string unless_repeats(const KernelSubject& subject) {
  if (std::string reason = unless_computes(subject); !reason.empty()) return reason;
  return subject.answers.repeats
             ? ""
             : text("{} repeats no fused operation: supports() and RepeatLimits refuse each of them", subject.name);
}

void primitives_repeat_fused_operations(const KernelSubject& subject, Report& report) {
  KernelSession session(subject.kernels());
  for (const DType type : subject.answers.types)
    for (const OperationCase& one : repeat_cases(type)) {
      const bool is_left_out = is_refused(session.set(), one);
      report.expect(is_left_out == is_refused(session.set(), one),
                    "{}: supports() or repeats() answers differently at its second call", to_text(one));
      if (is_left_out) continue;
      const CaseResults results = session.run(one).results;
      for (const char* const name : {"y", "normed", "mean", "rstd"}) {
        const auto again = results.find(text("{} again", name));
        if (again == results.end()) continue;
        expect_equal_bits(report, text("{}, repeated from its output", to_text(one)), {{name, again->second}},
                          {{name, results.at(name)}});
      }
    }
}

constexpr KernelCheck kKernelBitChecks[] = {
    {"Bits.AreEqualInEveryCallAndObject", "K15", unless_computes, calls_give_equal_bits},
    {"Bits.AreEqualAtEveryAlignedAddress", "K16", unless_computes, addresses_give_equal_bits},
    {"Bits.OfAnElementAreEqualAnywhere", "K17", unless_computes, elements_have_their_bits_anywhere},
    {"Bits.AreEqualWithEveryNumberOfThreads", "K18", unless_threads, threads_give_equal_bits},
    {"Stream.OrderIsKept", "K19", unless_on_device, streams_keep_their_order},
    {"Bits.AreRepeatedByPrimitives", "K56", unless_repeats, primitives_repeat_fused_operations},
};

} // namespace

bool has_repeats(KernelSet& set, std::span<const DType> types) {
  return std::ranges::any_of(types, [&set](DType type) {
    return std::ranges::any_of(repeat_cases(type), [&set](const OperationCase& one) { return !is_refused(set, one); });
  });
}

std::span<const KernelCheck> kernel_bit_checks() {
  return kKernelBitChecks;
}

} // namespace triax::conformance
