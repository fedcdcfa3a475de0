// SPDX-License-Identifier: Apache-2.0
// Checks of global memory: each planted fault is found, and its correct twin runs.
#include <gmock/gmock.h>

#include "ptx_harness.hpp"

namespace triax::test {

namespace {

using gsi::ErrorKind;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<std::uint32_t> kOnes(64, 1);

} // namespace

TEST(PtxMemoryChecks, ReadBehindTheEndOfAnAllocation) {
  Machine m(grid_kernel("ld.global.u32 %r4, [%a];\nst.global.u32 [%b], %r4;"));
  const auto in = m.buffer(std::vector<std::uint32_t>(63, 1), "input"), out = m.unwritten(256, "output");
  EXPECT_EQ(m.error_of("k", {1}, {63}, {in, out}), "");
  EXPECT_THAT(m.error_of("k", {1}, {64}, {in, out}),
              AllOf(HasSubstr("0 bytes behind the end of input (252 bytes)"), HasSubstr("kernel k"),
                    HasSubstr("PTX line 19"), HasSubstr("warp 1"), HasSubstr("lane 31")));
  EXPECT_EQ(m.kind, ErrorKind::kIllegalAddress);
}

TEST(PtxMemoryChecks, WriteBeforeAnAllocation) {
  Machine m(grid_kernel("st.global.u32 [%a+-4], %r0;"));
  const auto out = m.unwritten(256, "output");
  EXPECT_EQ(m.error_of("k", {1}, {64}, {out + 4, out}), "");
  EXPECT_THAT(m.error_of("k", {1}, {64}, {out, out}), HasSubstr("4 bytes before output"));
}

// The second memory usually has the addresses of the first, whose allocation was larger.
TEST(PtxMemoryChecks, ARangeOfADestroyedMemoryIsNotUsed) {
  {
    Machine larger(grid_kernel("st.global.u32 [%a], %r0;"));
    const auto out = larger.unwritten(4096, "output");
    EXPECT_EQ(larger.error_of("k", {1}, {64}, {out, out}), "");
  }
  Machine m(grid_kernel("st.global.u32 [%a], %r0;"));
  const auto out = m.unwritten(256, "output");
  EXPECT_THAT(m.error_of("k", {1}, {65}, {out, out}), HasSubstr("behind the end of output"));
}

TEST(PtxMemoryChecks, MisalignedLane) {
  Machine m(grid_kernel("ld.global.u32 %r4, [%a];"));
  const auto in = m.buffer(kOnes);
  EXPECT_EQ(m.error_of("k", {1}, {32}, {in, in}), "");
  EXPECT_THAT(m.error_of("k", {1}, {32}, {in + 2, in}), HasSubstr("is not a multiple of 4"));
  EXPECT_EQ(m.kind, ErrorKind::kMisalignedAddress);
  Machine vector(grid_kernel("ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%a];"));
  const auto wide = vector.buffer(kOnes);
  EXPECT_EQ(vector.error_of("k", {1}, {1}, {wide, wide}), "");
  EXPECT_THAT(vector.error_of("k", {1}, {2}, {wide, wide}), AllOf(HasSubstr("multiple of 16"), HasSubstr("lane 1")));
}

TEST(PtxMemoryChecks, UseAfterFree) {
  Machine m(grid_kernel("ld.global.u32 %r4, [%a];"));
  const auto in = m.buffer(kOnes, "input");
  EXPECT_EQ(m.error_of("k", {1}, {32}, {in, in}), "");
  ASSERT_TRUE(m.memory.unmap(in));
  EXPECT_THAT(m.error_of("k", {1}, {32}, {in, in}), HasSubstr("byte 0 of input (256 bytes), which was freed"));
  m.buffer(kOnes, "other"); // does not take the address
  EXPECT_THAT(m.error_of("k", {1}, {32}, {in, in}), HasSubstr("freed"));
}

TEST(PtxMemoryChecks, ReadOfMemoryThatNothingWrote) {
  Machine m(grid_kernel("ld.global.u32 %r4, [%a];\nst.global.u32 [%b], %r4;"));
  const auto in = m.unwritten(256, "input"), out = m.unwritten(256, "output");
  m.memory.mark_written(in, 131);
  EXPECT_EQ(m.error_of("k", {1}, {32}, {in, out}), "");
  EXPECT_THAT(m.error_of("k", {1}, {64}, {in, out}),
              AllOf(HasSubstr("nothing wrote"), HasSubstr("byte 131 of input"), HasSubstr("warp 1, lane 0")));
  EXPECT_EQ(m.kind, ErrorKind::kUnwritten);
  EXPECT_EQ(m.error_of("k", {1}, {32}, {out, in}), ""); // what the kernel itself wrote
}

TEST(PtxMemoryChecks, PinnedHostMemoryIsAccessedInPlace) {
  Machine m(grid_kernel("ld.global.u32 %r4, [%a];\nadd.u32 %r4, %r4, %r0;\nst.global.u32 [%b], %r4;"));
  std::vector<std::uint32_t> in(32, 5), out(32);
  m.memory.attach_host(in.data(), 128, "pinned input");
  m.memory.attach_host(out.data(), 128, "pinned output");
  const std::vector<std::uint64_t> params = {reinterpret_cast<std::uint64_t>(in.data()),
                                             reinterpret_cast<std::uint64_t>(out.data())};
  EXPECT_EQ(m.error_of("k", {1}, {32}, params), "");
  EXPECT_EQ(out[31], 36u);
  EXPECT_NE(m.error_of("k", {1}, {33}, params), "");
  EXPECT_TRUE(m.memory.detach_host(in.data()));
  EXPECT_NE(m.error_of("k", {1}, {32}, params), "");
}

TEST(PtxMemoryChecks, BlocksWriteDifferentValuesToOnePlace) {
  // Both blocks write to the first 32 words: first their block's number, then the same value.
  const std::string same_place = "mul.wide.u32 %x, %r0, 4;\nld.param.u64 %b, [second];\nadd.s64 %b, %b, %x;\n";
  Machine fault(grid_kernel(same_place + "st.global.u32 [%b], %r1;"));
  const auto out = fault.unwritten(256, "output");
  EXPECT_EQ(fault.error_of("k", {1}, {32}, {out, out}), "");
  fault.launch.threads = 1;
  EXPECT_THAT(fault.error_of("k", {2}, {32}, {out, out}),
              AllOf(HasSubstr("writes another value than was written by block 0"), HasSubstr("output")));
  EXPECT_EQ(fault.kind, ErrorKind::kHazard);
  Machine twin(grid_kernel(same_place + "st.global.u32 [%b], 7;"));
  for (int times = 0; times < 300; ++times) // blocks on two threads of the host may write at the same moment
    EXPECT_EQ(twin.error_of("k", {2}, {32}, {out, twin.unwritten(256)}), "");
}

TEST(PtxMemoryChecks, FindsABlockThatReadsAnotherBlocksWrite) {
  // Each thread writes its word, then reads that of the next block.
  const std::string text = "st.global.u32 [%b], %r0;\nld.global.u32 %r4, [%b+";
  Machine fault(grid_kernel(text + "128];"));
  fault.launch.threads = 1;
  const auto out = fault.buffer(kOnes, "output");
  EXPECT_THAT(fault.error_of("k", {2}, {32}, {out, out}), HasSubstr("writes what was read by block 0"));
  fault.launch.order = gsi::BlockOrder::kBackward;
  const auto longer = fault.buffer(std::vector<std::uint32_t>(96, 1), "output");
  EXPECT_THAT(fault.error_of("k", {2}, {32}, {longer, longer}), HasSubstr("reads what was written by block 1"));
  Machine twin(grid_kernel(text + "0];"));
  const auto other = twin.buffer(kOnes);
  EXPECT_EQ(twin.error_of("k", {2}, {32}, {other, other}), "");
  // One launch after the other is ordered.
  EXPECT_EQ(twin.error_of("k", {2}, {32}, {other, other}), "");
}

TEST(PtxMemoryChecks, FindsHazardsInPinnedMemory) {
  // Each block writes its number, at this thread's word or at the first one of the buffer.
  const std::string text = "st.global.u32 [%b], %r1;";
  std::vector<std::uint32_t> pinned(69);
  Machine twin(grid_kernel(text)), fault(grid_kernel("ld.param.u64 %b, [second];\n" + text));
  const auto at = reinterpret_cast<std::uint64_t>(pinned.data());
  for (Machine* m : {&twin, &fault}) {
    m->launch.threads = 1;
    m->memory.attach_host(pinned.data(), 4 * pinned.size() - 1, "pinned");
  }
  EXPECT_EQ(twin.error_of("k", {2}, {32}, {at, at}), "");
  EXPECT_EQ(twin.error_of("k", {2}, {32}, {at, at + 16}), "") << "the first launch has ended";
  EXPECT_THAT(fault.error_of("k", {2}, {32}, {at, at}),
              AllOf(HasSubstr("writes another value than was written by block 0"), HasSubstr("byte 0 of pinned")));
  EXPECT_TRUE(fault.memory.detach_host(pinned.data()));
  EXPECT_THAT(fault.error_of("k", {2}, {32}, {at, at}), HasSubstr("in no allocation"));
}

TEST(PtxMemoryChecks, LaunchesThatRunAtTheSameTimeHaveHazards) {
  const std::string text = "st.global.u32 [%b], 7;";
  Machine m(grid_kernel(text));
  const auto out = m.buffer(kOnes, "output");
  *m.memory.write_tags(out + 4) = 1000; // as a launch does that began after the next one, and is not ordered with it
  EXPECT_THAT(m.error_of("k", {1}, {32}, {out, out}),
              AllOf(HasSubstr("written by another launch, which runs at the same time"), HasSubstr("with an event")));
  EXPECT_EQ(m.kind, ErrorKind::kHazard);
  m.memory.new_tags(1000);
  EXPECT_EQ(m.error_of("k", {1}, {32}, {out, out}), "") << "launches that began before have ended";
}

TEST(PtxMemoryChecks, LocalMemoryAndParametersEnd) {
  const std::string depot = ".local .align 8 .b8 depot[16];\nmov.u64 %x, depot;\n";
  Machine m(grid_kernel(depot + "st.local.u32 [%x+12], %r0;\nld.local.u32 %r4, [%x+12];\nst.global.u32 [%b], %r4;"));
  const auto out = m.unwritten(256);
  EXPECT_EQ(m.error_of("k", {1}, {64}, {out, out}), "");
  EXPECT_EQ(m.read<std::uint32_t>(out, 64)[63], 63u); // each lane has its own
  Machine beyond(grid_kernel(depot + "st.local.u32 [%x+16], %r0;"));
  EXPECT_THAT(beyond.error_of("k", {1}, {1}, {0, 0}), HasSubstr("local memory (16 bytes)"));
  Machine param(grid_kernel("ld.param.u64 %x, [second+8];"));
  EXPECT_THAT(param.error_of("k", {1}, {1}, {0, 0}), HasSubstr("parameters (16 bytes)"));
}

TEST(PtxMemoryChecks, VariablesNeedMemoryAndLaunchesAKernel) {
  Machine m(
      ".global .b32 large[33554432];\n.visible .entry k(.param .u64 p)\n{\n.reg .b64 %x;\nmov.u64 %x, "
      "large;\nret;\n}\n");
  EXPECT_THAT(m.error_of("k", {1}, {1}, {0}),
              HasSubstr("no device memory is left for variable large")); // 128 MiB of 64
  try {
    gsi::run({}, m.memory);
    ADD_FAILURE();
  } catch (const gsi::MachineError& e) {
    EXPECT_STREQ(e.what(), "launch without a kernel");
  }
}

} // namespace triax::test
