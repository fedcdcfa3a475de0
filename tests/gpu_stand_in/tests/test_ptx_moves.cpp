// SPDX-License-Identifier: Apache-2.0
// Instructions that move data: asynchronous copies and matrix loads of every size, addresses of every space, cache
// modifiers, fences and clocks.
#include <gmock/gmock.h>

#include <numeric>

#include "ptx_harness.hpp"

namespace triax::test {
namespace {

using ::testing::Each;

constexpr unsigned kLanes = 32;

std::vector<std::uint32_t> counted(std::size_t count) {
  std::vector<std::uint32_t> out(count);
  std::iota(out.begin(), out.end(), 100u);
  return out;
}

// Runs `body` in one warp: %in and %out are buffers, %l the lane, %s the address of 1024 shared bytes. Each lane stores
// %r0 at the end. `in` holds 100, 101, 102...
std::vector<std::uint32_t> run(const std::string& body) {
  Machine machine(
      ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n.shared .align 16 .b8 words[1024];\n"
      ".reg .b64 %in, %out, %x<8>;\n.reg .b32 %l, %s, %r<16>;\n.reg .pred %p0;\n"
      "ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nmov.u32 %l, %tid.x;\nmov.u32 %s, words;\n" +
      body + "\nmul.wide.u32 %x7, %l, 4;\nadd.s64 %x7, %out, %x7;\nst.global.u32 [%x7], %r0;\nret;\n}\n");
  const auto in = machine.buffer(counted(256)), out = machine.unwritten(kLanes * sizeof(std::uint32_t));
  machine.run("k", {1}, {kLanes}, {in, out});
  return machine.read<std::uint32_t>(out, kLanes);
}

TEST(PtxMoves, AsyncCopiesOfEverySize) {
  for (const std::string bytes : {"4", "8", "16"}) {
    const auto size = static_cast<std::uint32_t>(std::stoi(bytes));
    // Each lane copies its piece, and reads the last word of it.
    const auto got = run("mul.lo.u32 %r1, %l, " + bytes + ";\ncvt.u64.u32 %x0, %r1;\nadd.s64 %x0, %in, %x0;\n" +
                         "add.u32 %r1, %s, %r1;\ncp.async." + (size == 16 ? "cg" : "ca") +
                         ".shared.global [%r1], [%x0], " + bytes + ";\ncp.async.commit_group;\ncp.async.wait_all;\n" +
                         "ld.shared.u32 %r0, [%r1+" + std::to_string(size - 4) + "];");
    for (std::uint32_t l = 0; l < kLanes; ++l) EXPECT_EQ(got[l], 100 + (l + 1) * size / 4 - 1) << bytes;
  }
}

TEST(PtxMoves, AsyncCopiesOf16BytesPadWithZeros) {
  const auto got =
      run("mul.lo.u32 %r1, %l, 16;\ncvt.u64.u32 %x0, %r1;\nadd.s64 %x0, %in, %x0;\nadd.u32 %r1, %s, %r1;\n"
          "cp.async.cg.shared.global [%r1], [%x0], 16, 8;\ncp.async.wait_all;\n"
          "ld.shared.u32 %r0, [%r1+4];\nld.shared.u32 %r2, [%r1+8];\nshl.b32 %r2, %r2, 16;\nadd.u32 %r0, %r0, %r2;");
  for (std::uint32_t l = 0; l < kLanes; ++l) EXPECT_EQ(got[l], 100 + 4 * l + 1);
}

// Row r of matrix n is 8 elements of 16 bits at byte 128 n + 16 r; element e of all has the value e.
TEST(PtxMoves, MatrixLoadsOfOneAndTwo) {
  const std::string fill =
      "shl.b32 %r1, %l, 2;\nadd.u32 %r1, %s, %r1;\nshl.b32 %r2, %l, 1;\nadd.u32 %r3, %r2, 1;\nshl.b32 %r3, %r3, 16;\n"
      "or.b32 %r4, %r2, %r3;\nst.shared.u32 [%r1], %r4;\nadd.u32 %r4, %r4, 4194368;\nst.shared.u32 [%r1+128], %r4;\n"
      "bar.sync 0;\nand.b32 %r5, %l, 15;\nshl.b32 %r5, %r5, 4;\nadd.u32 %r5, %s, %r5;\n";
  const auto value = [](std::uint32_t matrix, std::uint32_t lane) {
    const std::uint32_t element = 64 * matrix + 2 * lane;
    return element | (element + 1) << 16;
  };
  const auto one = run(fill + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%r5];");
  const auto first = run(fill + "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0, %r6}, [%r5];");
  const auto second = run(fill + "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r6, %r0}, [%r5];");
  for (std::uint32_t l = 0; l < kLanes; ++l) {
    EXPECT_EQ(one[l], value(0, l)) << l;
    EXPECT_EQ(first[l], value(0, l)) << l;
    EXPECT_EQ(second[l], value(1, l)) << l;
  }
}

TEST(PtxMoves, AddressesOfSharedMemoryConvertBothWays) {
  const auto got =
      run("cvt.u64.u32 %x0, %s;\ncvta.shared.u64 %x1, %x0;\nmul.wide.u32 %x2, %l, 4;\n"
          "add.s64 %x1, %x1, %x2;\nadd.u32 %r1, %l, 7;\nst.u32 [%x1], %r1;\n"
          "cvta.to.shared.u64 %x3, %x1;\nld.shared.u32 %r0, [%x3];");
  for (std::uint32_t l = 0; l < kLanes; ++l) EXPECT_EQ(got[l], l + 7);
}

TEST(PtxMoves, AddressesOfLocalMemoryConvertBothWays) {
  const auto got =
      run(".local .align 4 .b8 own[64];\nmov.u64 %x0, own;\ncvta.local.u64 %x1, %x0;\nadd.u32 %r1, %l, 7;\n"
          "st.u32 [%x1+60], %r1;\ncvta.to.local.u64 %x2, %x1;\nld.local.u32 %r0, [%x2+60];");
  for (std::uint32_t l = 0; l < kLanes; ++l) EXPECT_EQ(got[l], l + 7);
}

// Each instruction is refused when it runs, and says why.
TEST(PtxMoves, RefusesAddressesAndSizes) {
  const std::pair<const char*, const char*> cases[] = {
      {"cp.async.ca.shared.global [%s], [%in], 5;", "cp.async of 5 bytes; 4, 8 and 16 are allowed"},
      {"cp.async.ca.shared.global [%s], [%in], 4, 8;", "cp.async reads more bytes than it writes"},
      {"cp.async.ca.shared.global [%s+2], [%in], 4;", "must be multiples of 4"},
      {"cp.async.ca.shared.global [%s], [%in+4], 8;", "must be multiples of 8"},
      {"cp.async.ca.shared.global [%s+1024], [%in], 4;", "writes 4 bytes at shared address 1024"},
      {"st.param.u32 [in], %l;", "writes to the parameters of the kernel"},
      {"ld.param.u32 %r0, [in+2];", "address 2 is not a multiple of 4"},
      {"setp.eq.u32 %p0, %l, 0;\ncvt.u64.u32 %x0, %s;\ncvta.shared.u64 %x0, %x0;\n@%p0 mov.u64 %x0, %in;\n"
       "ld.u32 %r0, [%x0];",
       "lanes of one generic access address different spaces"}};
  for (const auto& [body, text] : cases) {
    try {
      run(body);
      ADD_FAILURE() << body;
    } catch (const gsi::MachineError& e) {
      EXPECT_THAT(e.what(), ::testing::HasSubstr(text)) << body;
    }
  }
}

TEST(PtxMoves, OrdersAndScopesDoNotChangeValues) {
  std::vector<std::string> loads = {"weak", "volatile"}, stores = {"weak", "volatile"};
  for (const std::string scope : {".cta", ".gpu", ".sys"}) {
    for (const std::string order : {"relaxed", "acquire"}) loads.push_back(order + scope);
    for (const std::string order : {"relaxed", "release"}) stores.push_back(order + scope);
  }
  for (const std::string space : {"global", "shared"}) {
    const std::string own = space == "global" ? "mul.wide.u32 %x0, %l, 4;\nadd.s64 %x0, %in, %x0;\n"
                                              : "shl.b32 %r2, %l, 2;\nadd.u32 %r2, %r2, %s;\ncvt.u64.u32 %x0, %r2;\n";
    const std::string start = own + "add.u32 %r1, %l, 7;\nst." + space + ".u32 [%x0], 1;\n";
    for (const std::string& load : loads) {
      for (const std::string& store : stores) {
        const auto got = run(start + "st." + store + "." + space + ".u32 [%x0], %r1;\nld." + load + "." + space +
                             ".u32 %r0, [%x0];");
        for (std::uint32_t l = 0; l < kLanes; ++l) EXPECT_EQ(got[l], l + 7) << load << store << space;
      }
    }
  }
}

TEST(PtxMoves, CacheModifiersAndFencesDoNotChangeValues) {
  for (const std::string load : {"ca", "cg", "cs", "nc", "lu", "cv", "L1::no_allocate", "L1::evict_last",
                                 "L1::evict_first", "L2::64B", "L2::128B", "L2::256B", "nc.L1::no_allocate.L2::128B"})
    EXPECT_THAT(run("ld.global." + load + ".u32 %r0, [%in];"), Each(100u)) << load;
  const std::string own = "mul.wide.u32 %x0, %l, 4;\nadd.s64 %x0, %in, %x0;\n";
  for (const std::string store : {"wb", "cg", "cs", "wt", "L1::no_allocate"})
    EXPECT_THAT(run(own + "st.global." + store + ".u32 [%x0], 7;\nld.global.u32 %r0, [%x0];"), Each(7u)) << store;
  for (const std::string fence : {"membar.gl;", "membar.cta;", "membar.sys;", "fence.acq_rel.gpu;", "fence.sc.sys;"})
    EXPECT_THAT(run("ld.global.u32 %r0, [%in];\n" + fence), Each(100u)) << fence;
}

TEST(PtxMoves, ClocksAdvance) {
  for (const std::string clock : {"%clock64", "%globaltimer"}) {
    EXPECT_THAT(run("mov.u64 %x0, " + clock + ";\nnanosleep.u32 100;\nmov.u64 %x1, " + clock +
                    ";\nsetp.gt.u64 %p0, %x1, %x0;\nselp.u32 %r0, 1, 0, %p0;"),
                Each(1u))
        << clock;
  }
  EXPECT_THAT(run("mov.u32 %r1, %clock;\nnanosleep.u32 100;\nmov.u32 %r2, %clock;\nsub.u32 %r2, %r2, %r1;\n"
                  "setp.gt.s32 %p0, %r2, 0;\nselp.u32 %r0, 1, 0, %p0;"),
              Each(1u));
}

} // namespace
} // namespace triax::test
