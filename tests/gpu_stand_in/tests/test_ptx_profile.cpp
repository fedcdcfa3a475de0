// SPDX-License-Identifier: Apache-2.0
// What the interpreter counts on request: sectors, bank conflicts, lanes, copies and kinds of instructions.
#include <numeric>

#include "ptx_harness.hpp"

namespace triax::test {

namespace {

using Words = std::vector<std::uint32_t>;

// A stride of 4 bytes: 4 sectors of 32 bytes, and no bank twice; of 128 bytes: a sector and a word of one bank for each
// lane.
TEST(PtxProfile, CountsSectorsAndConflicts) {
  for (const std::uint64_t stride : {4, 128}) {
    Machine m(warp_kernel("mul.lo.u32 %r0, %l, " + std::to_string(stride) +
                              ";\nmov.u32 %r1, words;\nadd.u32 %r1, %r1, %r0;\nst.shared.u32 [%r1], %l;\n"
                              "ld.param.u64 %x1, [result];\ncvt.u64.u32 %x2, %r0;\nadd.s64 %x1, %x1, %x2;\n"
                              "st.global.u32 [%x1], %l;",
                          ".shared .align 128 .b8 words[4096];\n"));
    m.launch.profile = true;
    const auto out = m.unwritten(4096);
    EXPECT_EQ(m.error_of("k", {1}, {32}, {out, out}), "");
    EXPECT_EQ(m.counts.requests, 1u);
    EXPECT_EQ(m.counts.sectors, stride == 4 ? 4u : 32u);
    EXPECT_EQ(m.counts.ideal_sectors, 4u);
    EXPECT_EQ(m.counts.accesses, 1u);
    EXPECT_EQ(m.counts.wavefronts, stride == 4 ? 1u : 32u);
    EXPECT_EQ(m.counts.ideal_wavefronts, 1u);
  }
}

TEST(PtxProfile, CountsInstructionsAndTheirLanes) {
  Machine m(
      warp_kernel("setp.lt.u32 %p0, %l, 5;\n@%p0 bra END;\nshfl.sync.idx.b32 %r0, %l, 5, 31, 0xFFFFFFE0;\nEND:\n"
                  "bar.sync 0;"));
  const auto out = m.unwritten(128);
  EXPECT_EQ(m.error_of("k", {3}, {32}, {out, out}), "");
  EXPECT_EQ(m.counts.launches, 1u);
  EXPECT_EQ(m.counts.blocks, 3u);
  EXPECT_EQ(m.counts.divergent, 3u);
  EXPECT_EQ(m.counts.shuffles, 3u);
  EXPECT_EQ(m.counts.barriers, 3u);
  EXPECT_LT(m.counts.lanes, 32 * m.counts.instructions);
}

// Lanes that load the same word share its sector.
TEST(PtxProfile, CountsSharedBytesOnce) {
  Machine m(warp_kernel("ld.global.u32 %r0, [%in];\nld.global.u32 %r0, [%in+60];"));
  m.launch.profile = true;
  const auto in = m.buffer(Words(32, 7)), out = m.unwritten(128);
  EXPECT_EQ(m.error_of("k", {1}, {32}, {in, out}), "");
  EXPECT_EQ(m.counts.requests, 2u);
  EXPECT_EQ(m.counts.sectors, 2u);
  EXPECT_EQ(m.counts.ideal_sectors, 2u);
}

// 16 bytes of each lane: 16 sectors, and 4 wavefronts. The second copy only writes zeros.
TEST(PtxProfile, CountsAsynchronousCopies) {
  Machine m(
      warp_kernel("shl.b32 %r0, %l, 4;\ncvt.u64.u32 %x1, %r0;\nadd.s64 %x1, %x1, %in;\nmov.u32 %r1, words;\n"
                  "add.u32 %r1, %r1, %r0;\ncp.async.cg.shared.global [%r1], [%x1], 16;\nmov.u32 %r2, 0;\n"
                  "cp.async.cg.shared.global [%r1+512], [%x1], 16, %r2;\ncp.async.wait_all;",
                  ".shared .align 128 .b8 words[1024];\n"));
  m.launch.profile = true;
  const auto in = m.buffer(Words(128, 7)), out = m.unwritten(128);
  EXPECT_EQ(m.error_of("k", {1}, {32}, {in, out}), "");
  EXPECT_EQ(m.counts.requests, 1u);
  EXPECT_EQ(m.counts.sectors, 16u);
  EXPECT_EQ(m.counts.ideal_sectors, 16u);
  EXPECT_EQ(m.counts.accesses, 2u);
  EXPECT_EQ(m.counts.wavefronts, 8u);
  EXPECT_EQ(m.counts.ideal_wavefronts, 8u);
}

// Kinds are counted with Launch::profile only.
TEST(PtxProfile, CountsKindsOfInstructions) {
  for (const bool profile : {true, false}) {
    Machine m(
        warp_kernel("cvt.rn.f32.u32 %f0, %l;\nex2.approx.f32 %f0, %f0;\nfma.rn.f32 %f0, %f0, %f0, %f0;\n"
                    "setp.lt.f32 %p0, %f0, %f0;\nshfl.sync.idx.b32 %r0, %l, 5, 31, 0xFFFFFFFF;\nadd.u32 %r0, %r0, 1;\n"
                    "bar.sync 0;\nst.global.u32 [%out], %r0;"));
    Machine empty(warp_kernel(""));
    m.launch.profile = empty.launch.profile = profile;
    const auto out = m.unwritten(128), unused = empty.unwritten(128);
    EXPECT_EQ(m.error_of("k", {2}, {32}, {out, out}), "");
    EXPECT_EQ(empty.error_of("k", {2}, {32}, {unused, unused}), "");
    EXPECT_EQ(m.counts.instructions, empty.counts.instructions + 2 * 8);
    for (const auto kind :
         {gsi::InstructionKind::kConvert, gsi::InstructionKind::kSpecial, gsi::InstructionKind::kFloat,
          gsi::InstructionKind::kCompare, gsi::InstructionKind::kWarp, gsi::InstructionKind::kInteger,
          gsi::InstructionKind::kBarrier, gsi::InstructionKind::kGlobal}) {
      const auto n = static_cast<std::size_t>(kind);
      EXPECT_EQ(m.counts.kinds[n] - empty.counts.kinds[n], profile ? 2u : 0u) << gsi::name_of(kind);
    }
    const auto sum = std::accumulate(m.counts.kinds.begin(), m.counts.kinds.end(), std::uint64_t{0});
    EXPECT_EQ(sum, profile ? m.counts.instructions : 0u);
  }
}

} // namespace

} // namespace triax::test
