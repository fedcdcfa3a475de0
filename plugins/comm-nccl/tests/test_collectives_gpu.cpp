// SPDX-License-Identifier: Apache-2.0
// Collectives of NCCL itself on several GPUs, or devices of the GPU stand-in: counts, types, operations and roots; and
// an abort. Ranks are threads, each with a GPU. Calls of CUDA that wait for all GPUs, such as cudaFreeHost, would wait
// for a peer's collective, so all ranks meet in a barrier before and after each collective.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <type_traits>
#include <vector>

#include "backend.hpp"
#include "support/error_of.hpp"
#include "support/ranks.hpp"
#include "triax/cuda/cuda_device.hpp"
#include "triax/half.hpp"

namespace triax::test {
namespace {

using comm_nccl::kOptions;

class CollectivesOnGpus : public ::testing::Test {
 protected:
  /// Runs the body on `count` ranks of a tensor group; skips the test if there are fewer GPUs.
  static void run(int count, const std::function<void(Rank&, Communicator&)>& body) {
    if (const Refusals answer = cuda::available({}); !answer.empty()) GTEST_SKIP() << answer.front().message;
    int gpus = 0;
    ASSERT_EQ(cudaGetDeviceCount(&gpus), cudaSuccess);
    if (gpus < count) GTEST_SKIP() << "needs " << count << " GPUs, and there are " << gpus;
    Communication through;
    through.plugin = "comm-nccl";
    for (const triax_option& option : kOptions) through.options.set(option.name, false);
    through.device = [count](int rank) { return cuda::make_device({rank, count}); };
    through.backend = [](const PluginContext& context) {
      return std::make_unique<comm_nccl::NcclBackend>(context, comm_nccl::linked_api());
    };
    run_ranks(
        Layout::ptd(1, count, 1), [&](Rank& rank) { body(rank, rank.join("tensor")); }, through);
  }

  /// Element i of rank r before a collective: small integers, exact in every type and sum.
  static double element(int rank, std::int64_t i) { return static_cast<double>((rank + 1) * (i % 7) - 3); }

  template <class T>
  static T as(double value) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<std::int64_t>(value)); // u8 wraps
    return T(static_cast<float>(value));
  }

  template <class T>
  static TensorView drawn(Rank& rank, DType dtype, std::int64_t count) {
    std::vector<T> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(as<T>(element(rank.index(), i)));
    return rank.tensor<T>(dtype, {count}, values);
  }

  template <class T>
  static void expect(Rank& rank, const TensorView& view, const std::function<double(std::int64_t)>& want,
                     const char* what) {
    const std::vector<T> got = rank.values<T>(view);
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(static_cast<float>(got[i]), static_cast<float>(as<T>(want(static_cast<std::int64_t>(i)))))
          << what << ", " << name_of(view.dtype()) << ", element " << i << ", rank " << rank.index();
  }

  /// Every collective on tensors of 4 elements for each rank.
  template <class T>
  static void expect_all(Rank& rank, Communicator& comm, DType dtype) {
    const int ranks = comm.size();
    const std::int64_t part = 4, all = part * ranks;
    const auto sum = [=](std::int64_t i) {
      double out = 0;
      for (int r = 0; r < ranks; ++r) out += element(r, i);
      return out;
    };
    const auto max = [=](std::int64_t i) {
      double out = element(0, i);
      for (int r = 1; r < ranks; ++r) out = std::max(out, element(r, i));
      return out;
    };
    const int own = rank.index();
    const auto one = [&](const char* what, std::int64_t in_count, std::int64_t out_count, const auto& call,
                         const std::function<double(std::int64_t)>& want) {
      const TensorView in = drawn<T>(rank, dtype, in_count), out = drawn<T>(rank, dtype, out_count);
      rank.finish();
      comm.barrier(Rank::deadline());
      rank.wait(call(in, out));
      comm.barrier(Rank::deadline());
      expect<T>(rank, out, want, what);
      comm.barrier(Rank::deadline());
    };
    using V = const TensorView&;
    Stream& stream = rank.stream();
    if constexpr (!std::is_same_v<T, std::uint8_t>) { // u8 cannot be reduced
      one(
          "all_reduce, sum", all, all, [&](V in, V out) { return comm.all_reduce(in, out, Reduce::sum, stream); }, sum);
      one(
          "all_reduce, max", all, all, [&](V in, V out) { return comm.all_reduce(in, out, Reduce::max, stream); }, max);
      one(
          "reduce_scatter, sum", all, part,
          [&](V in, V out) { return comm.reduce_scatter(in, out, Reduce::sum, stream); },
          [&](std::int64_t i) { return sum(own * part + i); });
      one(
          "reduce_scatter, max", all, part,
          [&](V in, V out) { return comm.reduce_scatter(in, out, Reduce::max, stream); },
          [&](std::int64_t i) { return max(own * part + i); });
    }
    one(
        "all_gather", part, all, [&](V in, V out) { return comm.all_gather(in, out, stream); },
        [&](std::int64_t i) { return element(static_cast<int>(i / part), i % part); });
    one(
        "all_to_all", all, all, [&](V in, V out) { return comm.all_to_all(in, out, stream); },
        [&](std::int64_t i) { return element(static_cast<int>(i / part), own * part + i % part); });
    for (int root = 0; root < ranks; ++root) {
      one(
          "broadcast", all, all, [&](V, V out) { return comm.broadcast(out, root, stream); },
          [&](std::int64_t i) { return element(root, i); });
    }
  }
};

TEST_F(CollectivesOnGpus, HaveTheValuesOfEveryTypeOperationAndRoot) {
  run(3, [](Rank& rank, Communicator& comm) {
    expect_all<float>(rank, comm, DType::f32);
    expect_all<double>(rank, comm, DType::f64);
    expect_all<Bf16>(rank, comm, DType::bf16);
    expect_all<F16>(rank, comm, DType::f16);
    expect_all<std::int32_t>(rank, comm, DType::i32);
    expect_all<std::int64_t>(rank, comm, DType::i64);
    expect_all<std::uint8_t>(rank, comm, DType::u8);
  });
}

/// The same bits are other numbers in the other 16-bit type, so a sum in the wrong type differs.
TEST_F(CollectivesOnGpus, SumsIn16BitsAreOfTheirType) {
  run(2, [](Rank& rank, Communicator& comm) {
    const TensorView bf16 = rank.tensor<Bf16>(DType::bf16, {2}, {Bf16(256.0f), Bf16(1.5f)});
    const TensorView f16 = rank.tensor<F16>(DType::f16, {2}, {F16(1025.0f), F16(1.5f)});
    comm.barrier(Rank::deadline());
    rank.wait(comm.all_reduce(bf16, bf16, Reduce::sum, rank.stream()));
    rank.wait(comm.all_reduce(f16, f16, Reduce::sum, rank.stream()));
    comm.barrier(Rank::deadline());
    EXPECT_EQ(static_cast<float>(rank.values<Bf16>(bf16)[0]), 512.0f);
    EXPECT_EQ(static_cast<float>(rank.values<F16>(f16)[0]), 2050.0f);
    comm.barrier(Rank::deadline());
  });
}

/// The peer never calls. After the abort, the stream has no work left.
TEST_F(CollectivesOnGpus, AbortEndsACallThatThePeerNeverPosts) {
  run(2, [](Rank& rank, Communicator& comm) {
    const TensorView view = rank.tensor(DType::f32, {4});
    comm.barrier(Rank::deadline());
    if (rank.index() == 1) {
      rank.store().get("over", Rank::deadline());
      return;
    }
    const Work work = comm.all_reduce(view, view, Reduce::sum, rank.stream());
    const cudaStream_t native = cuda::launch_stream(rank.stream());
    std::thread watchdog([&] { comm.abort("the watchdog"); });
    EXPECT_THAT(error_of([&] { rank.wait(work); }),
                ::testing::HasSubstr("rank 0 aborted group tensor.0: the watchdog"));
    watchdog.join();
    const Deadline end = deadline_in(20);
    while (cudaStreamQuery(native) == cudaErrorNotReady && Clock::now() < end) std::this_thread::yield();
    EXPECT_NE(cudaStreamQuery(native), cudaErrorNotReady) << "the call still runs";
    rank.store().set("over", "");
  });
}

} // namespace
} // namespace triax::test
