// SPDX-License-Identifier: Apache-2.0
// Checks of shared memory, barriers and .sync instructions: each planted fault is found, and its correct twin runs.
#include <gmock/gmock.h>

#include "ptx_harness.hpp"

namespace triax::test {

namespace {

using gsi::ErrorKind;
using ::testing::AllOf;
using ::testing::HasSubstr;

// %s: the address of this thread's word in shared memory; %t: thread, %w: warp, %l: lane.
std::string kernel(const std::string& body) {
  return ".shared .align 16 .b8 memory[4096];\n.visible .entry k(.param .u64 out)\n{\n.reg .b32 %s, %t, %w, %l, "
         "%r<8>;\n"
         ".reg .b64 %g, %x;\n.reg .pred %p<4>;\nld.param.u64 %g, [out];\nmov.u32 %t, %tid.x;\nshr.u32 %w, %t, 5;\n"
         "and.b32 %l, %t, 31;\nmov.u32 %s, memory;\nshl.b32 %r7, %t, 2;\nadd.u32 %s, %s, %r7;\nmul.wide.u32 %x, %t, "
         "4;\nadd.s64 %x, %g, %x;\n" +
         body + "\nret;\n}\n";
}

std::string error_of(const std::string& body, unsigned threads = 64, ErrorKind* kind = nullptr) {
  Machine m(kernel(body));
  const auto out = m.buffer(std::vector<std::uint32_t>(1024, 0));
  const std::string error = m.error_of("k", {1}, {threads}, {out});
  if (kind) *kind = m.kind;
  // Warps run in the reverse order too: what is accepted must not depend on it.
  m.launch.order = gsi::BlockOrder::kBackward;
  EXPECT_EQ(m.error_of("k", {1}, {threads}, {out}).empty(), error.empty()) << body;
  return error;
}

} // namespace

TEST(PtxSharedChecks, ReadOfAnotherWarpsWrite) {
  const std::string read = "xor.b32 %r0, %s, 128;\nld.shared.u32 %r1, [%r0];";
  EXPECT_EQ(error_of("st.shared.u32 [%s], %t;\nbar.sync 0;\n" + read), "");
  ErrorKind kind{};
  EXPECT_NE(error_of("st.shared.u32 [%s], %t;\n" + read, 64, &kind),
            ""); // unwritten or a hazard, by the order of warps
  EXPECT_THAT(error_of("st.shared.u32 [%s], %t;\nbar.sync 0;\nst.shared.u32 [%s], %t;\n" + read, 64, &kind),
              HasSubstr("no barrier lies between"));
  EXPECT_EQ(kind, ErrorKind::kHazard);
}

TEST(PtxSharedChecks, WriteAfterAnotherWarpsRead) {
  const std::string start = "st.shared.u32 [%s], %t;\nbar.sync 0;\nxor.b32 %r0, %s, 128;\nld.shared.u32 %r1, [%r0];\n";
  EXPECT_EQ(error_of(start + "bar.sync 0;\nst.shared.u32 [%s], 5;"), "");
  EXPECT_THAT(error_of(start + "st.shared.u32 [%s], 5;"), HasSubstr("no barrier lies between"));
}

TEST(PtxSharedChecks, WarpsWriteOnePlace) {
  const std::string first = "mov.u32 %r0, memory;\n";
  EXPECT_EQ(error_of(first + "st.shared.u32 [%r0], 9;"), ""); // the same value
  EXPECT_THAT(error_of(first + "st.shared.u32 [%r0], %w;"), HasSubstr("writes another value than was written by warp"));
}

TEST(PtxSharedChecks, LanesOfAWarpNeedASync) {
  const std::string read = "xor.b32 %r0, %s, 4;\nld.shared.u32 %r1, [%r0];";
  EXPECT_EQ(error_of("st.shared.u32 [%s], %t;\nbar.warp.sync -1;\n" + read, 32), "");
  EXPECT_THAT(error_of("st.shared.u32 [%s], %t;\n" + read, 32),
              AllOf(HasSubstr("of this warp"), HasSubstr("no bar.warp.sync")));
  // A lane may read what it wrote itself.
  EXPECT_EQ(error_of("st.shared.u32 [%s], %t;\nld.shared.u32 %r1, [%s];", 32), "");
  // Read, then written by another lane.
  const std::string start =
      "st.shared.u32 [%s], %t;\nbar.warp.sync -1;\nxor.b32 %r0, %s, 4;\nld.shared.u32 %r1, [%r0];\n";
  EXPECT_THAT(error_of(start + "st.shared.u32 [%s], 7;", 32), HasSubstr("writes what was read by"));
  EXPECT_EQ(error_of(start + "bar.warp.sync -1;\nst.shared.u32 [%s], 7;", 32), "");
}

TEST(PtxSharedChecks, AWarpOrdersItselfAloneBySync) {
  const std::string text =
      "st.shared.u32 [%s], %t;\nbar.warp.sync -1;\nbar.sync 0;\nst.shared.u32 [%s], 1;\nbar.warp.sync -1;\nxor.b32 "
      "%r0, %s, ";
  EXPECT_EQ(error_of(text + "4;\nld.shared.u32 %r1, [%r0];"), "");
  EXPECT_THAT(error_of(text + "128;\nld.shared.u32 %r1, [%r0];"), HasSubstr("no barrier lies between"));
}

// Lanes 0 to 15 wait for each other, as lanes 16 to 31 do. Lane 3 writes.
TEST(PtxSharedChecks, ASyncOfSomeLanesOrdersThem) {
  const std::string halves = "setp.lt.u32 %p0, %l, 16;\nselp.b32 %r6, 0xFFFF, 0xFFFF0000, %p0;\n";
  const std::string sync = "bar.warp.sync %r6;\n", read = "ld.shared.u32 %r1, [%r0+12];\n";
  const std::string write = halves + "mov.u32 %r0, memory;\nst.shared.u32 [%s], %t;\n";
  auto lane = [](int n, const std::string& text) {
    return "setp.eq.u32 %p1, %l, " + std::to_string(n) + ";\n@%p1 " + text;
  };
  EXPECT_EQ(error_of(write + sync + lane(5, read), 32), "");
  EXPECT_EQ(error_of(write + sync + "@%p0 " + read, 32), "");
  const std::string hazard = "reads what was written by lane 3 of this warp";
  EXPECT_THAT(error_of(write + sync + lane(20, read), 32), HasSubstr(hazard));
  EXPECT_THAT(error_of(write + sync + read, 32), HasSubstr(hazard)) << "all lanes read it at once";
  EXPECT_EQ(error_of(write + sync + "bar.warp.sync -1;\n" + read, 32), "");
  EXPECT_EQ(error_of(write + sync + "bar.sync 0;\n" + read), "");
  // One half after the other.
  EXPECT_EQ(error_of(write + "@%p0 bar.warp.sync 0xFFFF;\n" + lane(5, read), 32), "");
  EXPECT_THAT(error_of(write + "@%p0 bar.warp.sync 0xFFFF;\n" + lane(20, read), 32), HasSubstr(hazard));
  // From lane 3 to lane 5, and from lane 5 to lane 20.
  const std::string first = "setp.lt.u32 %p2, %l, 6;\n@%p2 bar.warp.sync 0x3F;\n",
                    second = "setp.ge.u32 %p2, %l, 5;\n@%p2 bar.warp.sync 0xFFFFFFE0;\n";
  EXPECT_EQ(error_of(write + first + second + lane(20, read), 32), "");
  EXPECT_THAT(error_of(write + second + first + lane(20, read), 32), HasSubstr(hazard));
  // Many lanes read, then one of them writes.
  const std::string readers = write + sync + "@%p0 " + read;
  EXPECT_EQ(error_of(readers + sync + lane(4, "st.shared.u32 [%r0+12], 9;"), 32), "");
  EXPECT_THAT(error_of(readers + lane(4, "st.shared.u32 [%r0+12], 9;"), 32), HasSubstr("writes what was read by"));
}

TEST(PtxSharedChecks, StoresOfOneByteKeepOtherAccesses) {
  const std::string start = "st.shared.u32 [%s], %t;\n", byte = "st.shared.u8 [%s+1], %t;\n",
                    read = "xor.b32 %r0, %s, 4;\nld.shared.u32 %r1, [%r0];";
  EXPECT_THAT(error_of(start + byte + read, 32), HasSubstr("reads what was written by lane"));
  EXPECT_THAT(error_of(start + "st.volatile.shared.u32 [%s], %t;\n" + read, 32), HasSubstr("was written by lane"));
  EXPECT_EQ(error_of(start + byte + "bar.warp.sync -1;\n" + read, 32), "");
  EXPECT_THAT(error_of("cp.async.ca.shared.global [%s], [%x], 4;\n" + byte + "cp.async.wait_all;"),
              HasSubstr("writes where a cp.async copies"));
  // Bytes 1 to 32 are written, by one lane each.
  const std::string bytes = "mov.u32 %r0, memory;\nadd.u32 %r1, %r0, %t;\nst.shared.u8 [%r1+1], %t;\nbar.sync 0;\n";
  EXPECT_EQ(error_of(bytes + "ld.shared.u8 %r2, [%r0+32];", 32), "");
  EXPECT_THAT(error_of(bytes + "ld.shared.u8 %r2, [%r0+34];", 32), HasSubstr("nothing wrote"));
}

TEST(PtxSharedChecks, UnwrittenAndBeyondAndMisaligned) {
  EXPECT_THAT(error_of("ld.shared.u32 %r0, [%s];"), HasSubstr("shared memory that nothing wrote"));
  EXPECT_EQ(error_of("st.shared.u32 [%s], 1;\nld.shared.u32 %r0, [%s];"), "");
  EXPECT_THAT(error_of("st.shared.u32 [%s+3844], 1;"), HasSubstr("4096 bytes of shared memory"));
  EXPECT_THAT(error_of("st.shared.u32 [%s+2], 1;"), HasSubstr("not a multiple of 4"));
}

TEST(PtxSharedChecks, TheFirstLaneBeyondIsNamed) {
  EXPECT_THAT(error_of("st.shared.u32 [%s+3972], 1;", 32),
              AllOf(HasSubstr("writes 4 bytes at shared address 4096;"), HasSubstr("lane 31)")));
  EXPECT_THAT(error_of("ld.shared.u32 %r0, [%s+8192];", 32),
              AllOf(HasSubstr("reads 4 bytes at shared address 8192;"), HasSubstr("lane 0)")));
}

TEST(PtxSharedChecks, SharedAtomics) {
  const std::string start =
      "mov.u32 %r0, memory;\nsetp.eq.u32 %p0, %t, 0;\n@%p0 st.shared.u32 [%r0], 0;\nbar.sync 0;\n";
  EXPECT_EQ(error_of(start + "red.shared.add.u32 [%r0], 1;\nbar.sync 0;\nld.shared.u32 %r1, [%r0];"), "");
  EXPECT_THAT(error_of(start + "red.shared.add.u32 [%r0], 1;\nld.shared.u32 %r1, [%r0];"),
              HasSubstr("reads what was written by an atomic of other lanes of this warp at shared address 0"));
  // Warp 0 accesses its words, and the atomics of warp 1 are there.
  const std::string plain = "st.shared.u32 [%s], %t;\nbar.sync 0;\nsetp.eq.u32 %p0, %w, 0;\nxor.b32 %r1, %s, 128;\n";
  const std::string add = "@!%p0 red.shared.add.u32 [%r1], 1;";
  EXPECT_THAT(error_of(plain + "@%p0 st.shared.u32 [%s], 7;\n" + add), HasSubstr("atomic where was written by warp 0"));
  EXPECT_THAT(error_of(plain + "@%p0 ld.shared.u32 %r2, [%s];\n" + add), HasSubstr("atomic where was read by warp 0"));
  EXPECT_EQ(error_of(plain + "@%p0 ld.shared.u32 %r2, [%s];\nbar.sync 0;\n" + add), "");
  EXPECT_THAT(error_of("mov.u32 %r0, memory;\nred.shared.add.u32 [%r0], 1;"), HasSubstr("nothing wrote"));
  EXPECT_THAT(error_of(start + "red.shared.add.u32 [%r0+2], 1;"), HasSubstr("not a multiple of 4"));
  EXPECT_THAT(error_of(start + "red.shared.add.u32 [%r0+4096], 1;"), HasSubstr("shared memory"));
}

// The atomic of the thread that wrote does not order its write before the atomics of others.
TEST(PtxSharedChecks, AtomicsOfOthersAfterAPlainWrite) {
  const std::string write = "mov.u32 %r0, memory;\nsetp.eq.u32 %p0, %t, 0;\n@%p0 st.shared.u32 [%r0], 0;\n";
  const std::string add = "red.shared.add.u32 [%r0], 1;";
  ErrorKind kind{};
  EXPECT_THAT(error_of(write + add, 32, &kind), HasSubstr("atomic where was written by lane 0 of this warp"));
  EXPECT_EQ(kind, ErrorKind::kHazard);
  EXPECT_NE(error_of(write + add), "");
  EXPECT_EQ(error_of(write + "@%p0 " + add), "");
  EXPECT_EQ(error_of(write + "bar.warp.sync -1;\n" + add, 32), "");
  EXPECT_EQ(error_of(write + "bar.sync 0;\n" + add), "");
}

TEST(PtxSharedChecks, AThreadComesAfterItsOwnAtomics) {
  const std::string start = "st.shared.u32 [%s], %t;\nbar.sync 0;\nred.shared.add.u32 [%s], 1;\n";
  EXPECT_EQ(error_of(start + "ld.shared.u32 %r1, [%s];\nadd.u32 %r1, %r1, 1;\nst.shared.u32 [%s], %r1;"), "");
  EXPECT_EQ(error_of(start + "st.shared.u32 [%s], 7;\natom.shared.add.u32 %r1, [%s], 1;\nld.shared.u32 %r1, [%s];"),
            "");
  const std::string neighbour = "xor.b32 %r0, %s, 4;\n", warp = "xor.b32 %r0, %s, 128;\n";
  for (const std::string access : {"ld.shared.u32 %r1, [%r0];", "st.shared.u32 [%r0], 7;"}) {
    EXPECT_THAT(error_of(start + neighbour + access, 32),
                AllOf(HasSubstr("written by an atomic of lane "), HasSubstr(" of this warp"),
                      HasSubstr("no bar.warp.sync or barrier")));
    EXPECT_EQ(error_of(start + "bar.warp.sync -1;\n" + neighbour + access, 32), "");
    EXPECT_THAT(error_of(start + "bar.warp.sync -1;\n" + warp + access), HasSubstr("no barrier lies between"));
    EXPECT_EQ(error_of(start + "bar.sync 0;\n" + warp + access), "");
  }
  EXPECT_THAT(
      error_of("st.shared.u32 [%s], %t;\nbar.sync 0;\nsetp.eq.u32 %p0, %w, 0;\n@%p0 red.shared.add.u32 [%s], 1;\n" +
               warp + "@!%p0 ld.shared.u32 %r1, [%r0];"),
      AllOf(HasSubstr("written by an atomic of warp 0"), HasSubstr("no barrier lies between")));
  // All threads read the word of the last lane of a warp.
  EXPECT_THAT(error_of(start + "mov.u32 %r0, memory;\nld.shared.u32 %r1, [%r0+124];", 32),
              HasSubstr("written by an atomic of lane 31 of this warp"));
}

TEST(PtxSharedChecks, AtomicsOfSeveralThreadsOnOneWord) {
  const std::string start =
      "mov.u32 %r0, memory;\nsetp.eq.u32 %p0, %t, 0;\n@%p0 st.shared.u32 [%r0], 0;\nbar.sync 0;\n"
      "red.shared.add.u32 [%r0], 1;\n";
  const std::string read = "ld.shared.u32 %r1, [%r0];";
  EXPECT_THAT(error_of(start + read, 32), HasSubstr("an atomic of other lanes of this warp"));
  EXPECT_THAT(error_of(start + "@%p0 " + read, 32), HasSubstr("an atomic of other lanes of this warp"));
  EXPECT_EQ(error_of(start + "bar.warp.sync -1;\n" + read, 32), "");
  EXPECT_THAT(error_of(start + "bar.warp.sync -1;\n" + read), HasSubstr("no barrier lies between"));
  EXPECT_THAT(error_of(start + "bar.warp.sync -1;\nsetp.eq.u32 %p0, %w, 0;\n@!%p0 " + read),
              AllOf(HasSubstr("an atomic of other warps"), HasSubstr("no barrier lies between")));
  EXPECT_EQ(error_of(start + "bar.sync 0;\nred.shared.add.u32 [%r0], 1;\nbar.sync 0;\n" + read), "");
  EXPECT_EQ(error_of(start + "ld.volatile.shared.u32 %r1, [%r0];"), ""); // strong, as an atomic is
}

TEST(PtxSharedChecks, AsyncCopies) {
  const std::string copy = "cp.async.ca.shared.global [%s], [%x], 4;\ncp.async.commit_group;\n";
  const std::string store = "ld.shared.u32 %r1, [%s];\nst.global.u32 [%x], %r1;";
  EXPECT_EQ(error_of(copy + "cp.async.wait_group 0;\n" + store), "");
  EXPECT_EQ(error_of(copy + "cp.async.wait_all;\n" + store), "");
  EXPECT_THAT(error_of(copy + store), HasSubstr("before its wait"));
  // wait_group 1 leaves the last group pending.
  const std::string next =
      "cp.async.ca.shared.global [%s+1024], [%x], 4;\ncp.async.commit_group;\ncp.async.wait_group 1;\n";
  EXPECT_EQ(error_of(copy + next + store + "\ncp.async.wait_all;"), "");
  EXPECT_THAT(error_of(copy + next + "ld.shared.u32 %r1, [%s+1024];"), HasSubstr("before its wait"));
  // A wait is this thread's alone.
  EXPECT_NE(error_of(copy + "cp.async.wait_all;\nxor.b32 %r0, %s, 128;\nld.shared.u32 %r1, [%r0];"), "");
  EXPECT_EQ(error_of(copy + "cp.async.wait_all;\nbar.sync 0;\nxor.b32 %r0, %s, 128;\nld.shared.u32 %r1, [%r0];"), "");
  EXPECT_THAT(error_of(copy + "st.shared.u32 [%s], 1;"), HasSubstr("before its wait"));
  EXPECT_THAT(error_of("add.s64 %x, %x, 8192;\n" + copy), HasSubstr("behind the end"));
}

TEST(PtxSharedChecks, TheSourceOfAnAsyncCopyIsWrittenBeforeItsWait) {
  const std::string copy = "cp.async.ca.shared.global [%s], [%x], 4;\n", wait = "cp.async.wait_all;\n",
                    write = "ld.global.u32 %r1, [%x];\nadd.u32 %r1, %r1, 1;\nst.global.u32 [%x], %r1;\n";
  ErrorKind kind{};
  EXPECT_THAT(error_of(copy + write + wait, 32, &kind),
              AllOf(HasSubstr("what this cp.async reads was written before its wait"), HasSubstr("byte 0 of")));
  EXPECT_EQ(kind, ErrorKind::kHazard);
  EXPECT_EQ(error_of(copy + wait + write), "");
}

TEST(PtxSharedChecks, AsyncCopyFillsWithZeros) {
  Machine m(
      kernel("st.shared.u32 [%s], 77;\nbar.sync 0;\ncp.async.ca.shared.global [%s], [%x], 4, "
             "0;\ncp.async.wait_all;\nld.shared.u32 %r1, [%s];\nst.global.u32 [%x], %r1;"));
  const auto out = m.buffer(std::vector<std::uint32_t>(1024, 3));
  EXPECT_EQ(m.error_of("k", {1}, {32}, {out}), "");
  EXPECT_EQ(m.read<std::uint32_t>(out, 1)[0], 0u);
}

TEST(PtxSharedChecks, AThreadThatEndsWaitsForItsAsyncCopies) {
  const std::string copy = "cp.async.ca.shared.global [%s], [%x], 4;\n";
  const std::string ends = "ends before a wait for this cp.async";
  ErrorKind kind{};
  EXPECT_THAT(error_of(copy, 32, &kind), AllOf(HasSubstr(ends), HasSubstr("cp.async.ca.shared.global [%s], [%x], 4")));
  EXPECT_EQ(kind, ErrorKind::kHazard);
  EXPECT_THAT(error_of(copy + "setp.eq.u32 %p0, %l, 5;\n@%p0 exit;\ncp.async.wait_all;"),
              AllOf(HasSubstr(ends), HasSubstr("lane 5")));
  EXPECT_EQ(error_of(copy + "cp.async.wait_all;"), "");
}

TEST(PtxSharedChecks, BarrierThatNotAllReach) {
  ErrorKind kind{};
  EXPECT_THAT(
      error_of("setp.eq.u32 %p0, %w, 0;\n@%p0 bra JOIN;\nbar.sync 1;\nJOIN:\nbar.sync 0;", 64, &kind),
      AllOf(HasSubstr("not all threads reach"), HasSubstr("warp 0 waits at line"), HasSubstr("warp 1 waits at line")));
  EXPECT_EQ(kind, ErrorKind::kBarrier);
  EXPECT_THAT(
      error_of("setp.lt.u32 %p0, %l, 7;\n@%p0 bra OTHER;\nbar.sync 0;\nbra END;\nOTHER:\nbar.sync 0;\nEND:", 32),
      HasSubstr("different barriers"));
  EXPECT_EQ(error_of("setp.eq.u32 %p0, %w, 0;\n@%p0 ret;\nbar.sync 0;"), ""); // warps that have ended do not count
}

TEST(PtxSharedChecks, NamedBarriersOrderTheirWarps) {
  // Warps 0 and 1 meet at barrier 1, warps 2 and 3 at barrier 2.
  const std::string text =
      "st.shared.u32 [%s], %t;\nshr.u32 %r0, %w, 1;\nadd.u32 %r0, %r0, 1;\nbar.sync %r0, 64;\nxor.b32 %r1, %s, ";
  EXPECT_EQ(error_of(text + "128;\nld.shared.u32 %r2, [%r1];", 128), "");
  EXPECT_NE(error_of(text + "256;\nld.shared.u32 %r2, [%r1];", 128), "");
  EXPECT_THAT(error_of("bar.sync 1, 48;"), HasSubstr("not a multiple of 32"));
  EXPECT_THAT(error_of("bar.sync 16;"), HasSubstr("0 to 15"));
  EXPECT_THAT(error_of("bar.sync 1, 96;"), HasSubstr("not all threads reach"));
  // bar.arrive: a producer does not wait.
  EXPECT_EQ(error_of("setp.eq.u32 %p0, %w, 0;\n@%p0 bra USE;\nst.shared.u32 [%s], %t;\nbar.arrive 3, "
                     "64;\nret;\nUSE:\nbar.sync 3, 64;\nld.shared.u32 %r1, [%s+128];"),
            "");
}

TEST(PtxSharedChecks, WhatFollowsAnArrivalIsNotBeforeTheBarrier) {
  const auto produce = [](const std::string& after) {
    return "setp.eq.u32 %p0, %w, 0;\n@%p0 bra USE;\nst.shared.u32 [%s], %t;\nbar.arrive 3, 64;\n" + after +
           "ret;\nUSE:\nbar.sync 3, 64;\nld.shared.u32 %r1, [%s+128];";
  };
  EXPECT_EQ(error_of(produce("")), "");
  EXPECT_THAT(error_of(produce("st.shared.u32 [%s], 4;\n")), HasSubstr("no barrier lies between"));
  EXPECT_EQ(error_of(produce("st.shared.u32 [%s+1024], 4;\n")), "");
  // An arrival does not wait: not for other warps, and not for other lanes of its warp.
  EXPECT_THAT(error_of("setp.eq.u32 %p0, %w, 0;\nst.shared.u32 [%s], %t;\n@%p0 bra USE;\nbar.arrive 3, 64;\n"
                       "bar.sync 4, 32;\nst.shared.u32 [%s+-128], 4;\nret;\nUSE:\nbar.sync 3, 64;"),
              HasSubstr("no barrier lies between"));
  EXPECT_THAT(error_of(produce("xor.b32 %r0, %s, 4;\nld.shared.u32 %r1, [%r0];\n")), HasSubstr("of this warp"));
}

TEST(PtxSharedChecks, ABarrierOpensAtItsThreadCount) {
  const std::string text = "st.shared.u32 [%s], %t;\nbar.sync 1, 32;\nxor.b32 %r0, %s, ";
  EXPECT_EQ(error_of(text + "4;\nld.shared.u32 %r1, [%r0];"), "");
  EXPECT_NE(error_of(text + "128;\nld.shared.u32 %r1, [%r0];"), ""); // each warp passes alone
  // A warp that has arrived and waits elsewhere is not released.
  EXPECT_THAT(error_of("setp.eq.u32 %p0, %w, 0;\n@%p0 bra USE;\nbar.arrive 3, 64;\nbar.sync 4, 64;\nret;\nUSE:\n"
                       "bar.sync 3, 64;"),
              HasSubstr("not all threads reach"));
}

TEST(PtxSharedChecks, LanesThatPassABarrier) {
  const std::string odd = "and.b32 %r0, %t, 1;\nsetp.eq.u32 %p0, %r0, 0;\n";
  ErrorKind kind{};
  EXPECT_THAT(error_of(odd + "@%p0 bra END;\nbar.sync 0;\nEND:\nst.global.u32 [%x], 1;", 64, &kind),
              AllOf(HasSubstr("ends without this barrier"), HasSubstr("lane 0)")));
  EXPECT_EQ(kind, ErrorKind::kBarrier);
  // A loop with another number of turns in each lane.
  EXPECT_THAT(error_of(odd + "AGAIN:\nbar.sync 0;\nadd.u32 %r0, %r0, 1;\nsetp.lt.u32 %p1, %r0, 2;\n"
                             "@%p1 bra AGAIN;\nst.global.u32 [%x], 1;"),
              HasSubstr("ends without this barrier"));
  // Threads may end early, also after other work, and may come to the barrier from behind it.
  EXPECT_EQ(error_of(odd + "@%p0 bra END;\nbar.sync 0;\nst.global.u32 [%x], 1;\nEND:"), "");
  EXPECT_EQ(error_of(odd + "@%p0 bra OWN;\nbar.sync 0;\nst.global.u32 [%x], 1;\nret;\nOWN:\nst.global.u32 [%x], 2;"),
            "");
  EXPECT_EQ(error_of(odd + "@%p0 bra RARE;\nMEET:\nbar.sync 0;\nst.global.u32 [%x], 1;\nret;\nRARE:\n"
                           "st.global.u32 [%x], 2;\nbra MEET;"),
            "");
}

// Without .aligned, lanes of a warp may come from different places.
TEST(PtxSharedChecks, BarriersOfEachName) {
  const std::string store = "st.shared.u32 [%s], %t;\n", read = "\nxor.b32 %r0, %s, 128;\nld.shared.u32 %r1, [%r0];";
  for (const std::string barrier :
       {"bar.cta.sync 0;", "barrier.sync 0;", "barrier.sync.aligned 0;", "barrier.cta.sync 0;",
        "barrier.cta.sync.aligned 2, 64;", "barrier.cta.red.popc.aligned.u32 %r2, 0, %p0;",
        "setp.lt.u32 %p0, %l, 7;\n@%p0 bra OTHER;\nbarrier.sync 0;\nbra END;\nOTHER:\nbarrier.sync 0;\nEND:"})
    EXPECT_EQ(error_of(store + "setp.eq.u32 %p0, %t, 0;\n" + barrier + read), "") << barrier;
  EXPECT_EQ(error_of("setp.eq.u32 %p0, %w, 0;\n@%p0 bra USE;\nst.shared.u32 [%s], %t;\nbarrier.cta.arrive 3, 64;\n"
                     "ret;\nUSE:\nbarrier.cta.sync 3, 64;\nld.shared.u32 %r1, [%s+128];"),
            "");
}

TEST(PtxSharedChecks, BarriersWithVotes) {
  Machine m(
      kernel("setp.eq.u32 %p0, %t, 40;\nbar.red.or.pred %p1, 0, %p0;\nbar.red.and.pred %p2, 0, %p0;\nbar.red.popc.u32 "
             "%r0, 0, %p0;\n"
             "selp.u32 %r1, 10, 0, %p1;\nselp.u32 %r2, 100, 0, %p2;\nadd.u32 %r0, %r0, %r1;\nadd.u32 %r0, %r0, "
             "%r2;\nst.global.u32 [%x], %r0;"));
  const auto out = m.unwritten(256);
  EXPECT_EQ(m.error_of("k", {1}, {64}, {out}), "");
  EXPECT_EQ(m.read<std::uint32_t>(out, 64), std::vector<std::uint32_t>(64, 11));
}

TEST(PtxSharedChecks, DivergentSync) {
  ErrorKind kind{};
  const std::string half = "setp.lt.u32 %p0, %l, 16;\n";
  EXPECT_EQ(error_of(half + "@%p0 shfl.sync.bfly.b32 %r0, %l, 1, 31, 0xFFFF;", 32), "");
  EXPECT_THAT(error_of(half + "@!%p0 bra END;\nshfl.sync.bfly.b32 %r0, %l, 1, 31, -1;\nbar.sync 0;\nEND:\nbar.sync 0;",
                       32, &kind),
              HasSubstr("does not come"));
  EXPECT_EQ(kind, ErrorKind::kDivergence);
  EXPECT_THAT(error_of(half + "@%p0 shfl.sync.bfly.b32 %r0, %l, 16, 31, 0xFFFF;", 32),
              HasSubstr("shuffle from lane 16"));
  EXPECT_THAT(error_of("shfl.sync.bfly.b32 %r0, %l, 1, 31, 0xFFFF;", 32), HasSubstr("not in its own mask"));
  EXPECT_THAT(error_of("setp.eq.u32 %p0, %l, 3;\n@%p0 ret;\nshfl.sync.idx.b32 %r0, %l, 0, 31, -1;", 32),
              HasSubstr("take part"));
  // Lanes of a mask meet, wherever they were before.
  EXPECT_EQ(error_of(half + "@%p0 bra LOW;\nadd.u32 %r1, %l, 5;\nbra END;\nLOW:\nadd.u32 %r1, %l, "
                            "7;\nEND:\nshfl.sync.idx.b32 %r0, %r1, 0, 31, -1;",
                     32),
            "");
}

TEST(PtxSharedChecks, MatricesNeedTheWholeWarp) {
  const std::string regs = ".reg .f32 %f<8>;\nmov.f32 %f0, 0f00000000;\n";
  const std::string mma =
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r0, %r0, %r0, %r0}, {%r0, %r0}, "
      "{%f0, %f0, %f0, %f0};";
  EXPECT_EQ(error_of(regs + "mov.u32 %r0, 0;\n" + mma, 32), "");
  EXPECT_NE(error_of(regs + "mov.u32 %r0, 0;\nsetp.eq.u32 %p0, %l, 5;\n@!%p0 " + mma, 32), "");
  EXPECT_THAT(error_of(regs + "mov.u32 %r0, 0;\n" + mma, 31), HasSubstr("all 32 lanes"));
  EXPECT_THAT(
      error_of("mov.u32 %r0, memory;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r0];", 32),
      HasSubstr("nothing wrote"));
}

TEST(PtxSharedChecks, Trap) {
  ErrorKind kind{};
  EXPECT_THAT(error_of("setp.eq.u32 %p0, %l, 9;\n@%p0 trap;", 32, &kind),
              AllOf(HasSubstr("trap"), HasSubstr("lane 9")));
  EXPECT_EQ(kind, ErrorKind::kTrap);
}

} // namespace triax::test
