// SPDX-License-Identifier: Apache-2.0
// Order of blocks by fences, releases, acquires and atomics: each planted fault is found, and its correct twin runs.
#include <gmock/gmock.h>

#include "ptx_harness.hpp"

namespace triax::test {

namespace {

using gsi::ErrorKind;
using ::testing::HasSubstr;

const std::vector<std::uint32_t> kOnes(64, 1);

// Block 0 writes data and sets a flag; block 1 waits for the flag and reads the data. The texts are what each makes
// between its access to the data and to the flag, and how it accesses the flag.
std::string error_of_flag(const std::string& after_write, const std::string& set, const std::string& get,
                          const std::string& before_read, const std::string& before_write = "") {
  Machine m(
      grid_kernel("ld.param.u64 %a, [first];\nld.param.u64 %b, [second];\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra READ;\n" +
                  before_write + "st.global.u32 [%a], 7;\n" + after_write + set + " [%b], 1;\nret;\nREAD:\n" + get +
                  " %r4, [%b];\nsetp.eq.u32 %p1, %r4, 0;\n@%p1 bra READ;\n" + before_read +
                  "ld.global.u32 %r5, [%a];\nst.global.u32 [%b+4], %r5;"));
  m.launch.threads = 1;
  const auto data = m.buffer(kOnes, "data"), flag = m.buffer(std::vector<std::uint32_t>(2, 0), "flag");
  const std::string error = m.error_of("k", {2}, {1}, {data, flag});
  EXPECT_EQ(m.read<std::uint32_t>(flag, 2)[1], error.empty() ? 7u : 0u);
  return error;
}

// What two blocks report whose lanes run `body` on `words` zeros at %a; %p0: the block is the first.
std::string error_at_one_place(const std::string& body, std::size_t words, unsigned lanes) {
  Machine m(grid_kernel("ld.param.u64 %a, [first];\nsetp.eq.u32 %p0, %r1, 0;\n" + body));
  m.launch.threads = 1;
  const auto place = m.buffer(std::vector<std::uint32_t>(words, 0));
  return m.error_of("k", {2}, {lanes}, {place, place});
}

} // namespace

TEST(PtxBlockOrder, AtomicsAndFencesOrderBlocks) {
  Machine atomics(grid_kernel("ld.param.u64 %a, [first];\nred.global.add.u32 [%a], 1;"));
  const auto counter = atomics.buffer(std::vector<std::uint32_t>(1, 0));
  EXPECT_EQ(atomics.error_of("k", {8}, {64}, {counter, counter}), "");
  EXPECT_EQ(atomics.read<std::uint32_t>(counter, 1)[0], 512u);

  // The last block to come adds what the others wrote. Without the fences that is a hazard.
  auto last_block = [](const std::string& fence) {
    return grid_kernel(
        "setp.ne.u32 %p0, %r0, 0;\n@%p0 ret;\nld.param.u64 %a, [first];\nld.param.u64 %b, [second];\n"
        "mul.wide.u32 %x, %r1, 4;\nadd.s64 %x, %b, %x;\nst.global.u32 [%x], %r1;\n" +
        fence +
        "atom.global.add.u32 %r4, [%a], 1;\nmov.u32 %r5, %nctaid.x;\nadd.u32 %r4, %r4, 1;\n"
        "setp.ne.u32 %p1, %r4, %r5;\n@%p1 ret;\n" +
        fence + "ld.global.u32 %r6, [%b];\nst.global.u32 [%b+60], %r6;");
  };
  Machine ordered(last_block("membar.gl;\n"));
  const auto flag = ordered.buffer(std::vector<std::uint32_t>(1, 0)), parts = ordered.unwritten(64);
  EXPECT_EQ(ordered.error_of("k", {8}, {32}, {flag, parts}), "");
  Machine unordered(last_block(""));
  const auto flag2 = unordered.buffer(std::vector<std::uint32_t>(1, 0)), parts2 = unordered.unwritten(64);
  unordered.launch.threads = 1;
  EXPECT_THAT(unordered.error_of("k", {8}, {32}, {flag2, parts2}), HasSubstr("reads what was written by block 0"));
}

TEST(PtxBlockOrder, AFenceOrdersWhatIsBeforeIt) {
  const std::string set = "st.volatile.global.u32", get = "ld.volatile.global.u32", fence = "membar.gl;\n";
  const std::string hazard = "reads what was written by block 0 (in the order of the grid)";
  EXPECT_EQ(error_of_flag(fence, set, get, fence), "");
  EXPECT_EQ(error_of_flag("fence.acq_rel.gpu;\n", set, get, "fence.sc.sys;\n"), "");
  EXPECT_EQ(error_of_flag(fence, set, get, "membar.sys;\n", fence), "");
  EXPECT_THAT(error_of_flag("", set, get, fence, fence), HasSubstr(hazard)) << "the write follows its fence";
  EXPECT_THAT(error_of_flag(fence, set, get, ""), HasSubstr(hazard));
  EXPECT_THAT(error_of_flag("membar.cta;\n", set, get, fence), HasSubstr(hazard)) << "within the block only";
  EXPECT_THAT(error_of_flag(fence, set, get, "fence.acq_rel.cta;\n"), HasSubstr(hazard));
}

TEST(PtxBlockOrder, AReleaseAndAnAcquireAreFences) {
  const std::string release = "st.release.gpu.global.u32", acquire = "ld.acquire.gpu.global.u32",
                    set = "st.relaxed.gpu.global.u32", get = "ld.relaxed.gpu.global.u32";
  const std::string hazard = "reads what was written by block 0 (in the order of the grid)";
  EXPECT_EQ(error_of_flag("", release, acquire, ""), "");
  EXPECT_EQ(error_of_flag("", "st.release.sys.global.u32", "ld.acquire.sys.global.u32", ""), "");
  EXPECT_EQ(error_of_flag("", "red.release.gpu.global.add.u32", acquire, ""), "");
  EXPECT_EQ(error_of_flag("membar.gl;\n", set, get, "membar.gl;\n"), "");
  EXPECT_EQ(error_of_flag("", release, get, "membar.gl;\n"), "");
  EXPECT_EQ(error_of_flag("membar.gl;\n", set, acquire, ""), "");
  EXPECT_THAT(error_of_flag("", set, get, ""), HasSubstr(hazard));
  EXPECT_THAT(error_of_flag("", set, acquire, ""), HasSubstr(hazard));
  EXPECT_THAT(error_of_flag("", release, get, ""), HasSubstr(hazard));
  EXPECT_THAT(error_of_flag("", "st.release.cta.global.u32", acquire, ""), HasSubstr(hazard));
  EXPECT_THAT(error_of_flag("", release, "ld.acquire.cta.global.u32", ""), HasSubstr(hazard));
  EXPECT_THAT(error_of_flag("", "red.relaxed.gpu.global.add.u32", acquire, ""), HasSubstr(hazard));
}

// The last block adds what the others wrote; the atomic that counts blocks orders them, or does not.
TEST(PtxBlockOrder, AnAtomicThatReleasesAndAcquiresOrdersBlocks) {
  auto error = [](const std::string& how) {
    Machine m(
        grid_kernel("ld.param.u64 %a, [first];\nst.global.u32 [%b], %r1;\natom" + how +
                    ".global.add.u32 %r4, [%a], 1;\nsetp.ne.u32 %p1, %r4, 7;\n@%p1 ret;\nld.param.u64 %b, [second];\n"
                    "ld.global.u32 %r6, [%b];\nst.global.u32 [%b+60], %r6;"));
    m.launch.threads = 1;
    const auto flag = m.buffer(std::vector<std::uint32_t>(1, 0)), parts = m.unwritten(64);
    return m.error_of("k", {8}, {1}, {flag, parts});
  };
  EXPECT_EQ(error(".acq_rel.gpu"), "");
  EXPECT_NE(error(".acq_rel.cta"), "");
  EXPECT_NE(error(".release.gpu"), "");
  EXPECT_NE(error(".acquire.gpu"), "");
  EXPECT_NE(error(""), "");
}

// A block reads and writes its word before and after fences, and the next block reads it in the end.
TEST(PtxBlockOrder, ABlockIsOrderedWithItself) {
  const std::string turn = "ld.global.u32 %r4, [%a];\nadd.u32 %r4, %r4, 1;\nst.global.u32 [%a], %r4;\nmembar.gl;\n";
  const std::string loop =
      "mov.u32 %r5, 0;\nAGAIN:\n" + turn + "add.u32 %r5, %r5, 1;\nsetp.lt.u32 %p0, %r5, 5000;\n@%p0 bra AGAIN;\n";
  Machine m(
      grid_kernel(loop + "setp.eq.u32 %p1, %r1, 0;\n@%p1 ret;\nld.global.u32 %r6, [%a+-4];\nst.global.u32 [%b], %r6;"));
  m.launch.threads = 1;
  const auto in = m.buffer(kOnes), out = m.buffer(kOnes);
  EXPECT_EQ(m.error_of("k", {2}, {1}, {in, out}), "");
  EXPECT_EQ(m.read<std::uint32_t>(out, 2)[1], 5001u);
}

TEST(PtxBlockOrder, AReadIsOrderedBeforeAWriteByFences) {
  auto error = [](const std::string& after_read, const std::string& before_write) {
    Machine m(
        grid_kernel("ld.param.u64 %a, [first];\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra WRITE;\nld.global.u32 %r4, [%a];\n" +
                    after_read + "ret;\nWRITE:\n" + before_write + "st.global.u32 [%a], 3;"));
    m.launch.threads = 1;
    const auto data = m.buffer(kOnes);
    return m.error_of("k", {2}, {1}, {data, data});
  };
  EXPECT_EQ(error("membar.gl;\n", "membar.gl;\n"), "");
  EXPECT_THAT(error("", "membar.gl;\n"), HasSubstr("writes what was read by block 0"));
  EXPECT_THAT(error("membar.gl;\n", ""), HasSubstr("writes what was read by block 0"));
}

// Block 0 makes an atomic, block 1 a plain access, in both orders of the blocks.
TEST(PtxBlockOrder, PlainAccessAfterAnAtomicOfAnotherBlock) {
  auto error = [](const std::string& access, gsi::BlockOrder order, const std::string& fence = "",
                  const std::string& own = "") {
    Machine m(
        grid_kernel("ld.param.u64 %a, [first];\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra PLAIN;\n"
                    "red.global.add.u32 [%a], 1;\n" +
                    fence + "ret;\nPLAIN:\n" + fence + own + access));
    m.launch.threads = 1;
    m.launch.order = order;
    const auto counter = m.buffer(std::vector<std::uint32_t>(1, 0), "counter");
    const std::string text = m.error_of("k", {2}, {32}, {counter, counter});
    EXPECT_TRUE(text.empty() || m.kind == ErrorKind::kHazard) << text;
    return text;
  };
  const auto forward = gsi::BlockOrder::kForward, backward = gsi::BlockOrder::kBackward;
  const std::string read = "ld.global.u32 %r4, [%a];\n", write = "st.global.u32 [%a], 3;\n";
  EXPECT_THAT(error(read, forward), HasSubstr("reads what was written by an atomic of block 0"));
  EXPECT_THAT(error(write, forward), HasSubstr("writes another value than was written by an atomic of block 0"));
  for (const std::string& access : {read, write}) {
    EXPECT_THAT(error(access, backward), HasSubstr("atomic where plain accesses were made by block 1"));
    EXPECT_EQ(error(access, forward, "membar.gl;\n"), "");
    // What a block's own atomic or strong load reads is before its plain accesses.
    EXPECT_EQ(error(access, forward, "", "red.global.add.u32 [%a], 1;\n"), "");
    EXPECT_EQ(error(access, forward, "", "ld.volatile.global.u32 %r5, [%a];\n"), "");
  }
}

/// A fence of the writer alone orders nothing.
TEST(PtxBlockOrder, AnAtomicDoesNotHideAPlainWriteOfItsBlock) {
  for (const std::string fence : {"", "@%p0 membar.gl;\n"})
    EXPECT_THAT(error_at_one_place("@%p0 st.global.u32 [%a], 3;\n" + fence + "red.global.add.u32 [%a], 1;", 1, 1),
                HasSubstr("atomic where plain accesses were made by"))
        << fence;
}

TEST(PtxBlockOrder, AnAtomicIsComparedInAllItsBytes) {
  EXPECT_THAT(
      error_at_one_place("@%p0 st.global.u32 [%a+4], 3;\nmov.u64 %x, 1;\n@!%p0 red.global.add.u64 [%a], %x;", 2, 1),
      HasSubstr("atomic where plain accesses were made by"));
}

TEST(PtxBlockOrder, PlainAccessWhereAtomicsAreMade) {
  EXPECT_THAT(error_at_one_place("@%p0 st.global.u32 [%a], 3;\n@!%p0 red.global.add.u32 [%a], 1;", 1, 32),
              HasSubstr("plain accesses"));
}

} // namespace triax::test
