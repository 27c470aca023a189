"""Reading ELF files: class, machine, dynamic section, symbols, notes. No external tool is started.

Only what the lab asks is decoded. Offsets and sizes come from the file and are never trusted:
anything out of range raises NotElf.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64", 21: "ppc64le", 22: "s390x"}

_PT_DYNAMIC, _PT_INTERP, _PT_NOTE = 2, 3, 4
_DT_NEEDED, _DT_STRTAB, _DT_SONAME, _DT_RPATH, _DT_RUNPATH, _DT_FLAGS_1 = 1, 5, 14, 15, 29, 0x6FFFFFFB
_DF_1_PIE = 0x08000000
_SHT_SYMTAB, _SHT_NOTE, _SHT_DYNSYM, _SHT_VERSIONS_NEEDED = 2, 7, 11, 0x6FFFFFFE
_NT_GNU_BUILD_ID = 3
_STT_FUNC, _STT_GNU_IFUNC = 2, 10


class NotElf(ValueError):
    """The file is no ELF file, or is cut short; the text says which."""


@dataclass(frozen=True)
class Elf:
    """What one ELF file says about itself.

    kind: "executable" (position-independent ones too), "shared", "relocatable", "core" or "other"
    bits: 32 or 64
    machine: as uname -m spells it, or "machine-N"
    interpreter: path of the dynamic linker it asks for; None for libraries and static programs
    dynamic: it has a dynamic section
    soname, build_id: as text (hexadecimal digits for the latter); None where absent
    needed: sonames of the libraries it is linked against
    versions: by soname, the versions of symbols that it takes from there
    rpath: folders that come before LD_LIBRARY_PATH, separated by colons; "" for none
    exported: names other objects can bind to (defined, global or weak, default or protected visibility)
    private: functions defined in .symtab but not exported; empty for stripped files
    imported: undefined dynamic symbols
    sections: names of its sections
    """

    path: Path
    kind: str
    bits: int
    machine: str
    interpreter: str | None
    dynamic: bool
    soname: str | None
    build_id: str | None
    needed: tuple[str, ...]
    versions: Mapping[str, tuple[str, ...]]
    rpath: str
    exported: frozenset[str]
    private: frozenset[str]
    imported: frozenset[str]
    sections: tuple[str, ...]


def read(path: Path) -> Elf:
    """Decode an ELF file.

    raises: NotElf if it is none or is cut short; OSError if it cannot be read
    """
    with path.open("rb") as stream:
        if os.fstat(stream.fileno()).st_size < 64:
            raise NotElf("too short for an ELF file")
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _Reader(path, data).decode()
            except (struct.error, IndexError, OverflowError, ValueError) as problem:
                if isinstance(problem, NotElf):
                    raise
                raise NotElf(f"damaged ELF file: {problem}") from None


@dataclass(frozen=True)
class _Section:
    name_at: int
    kind: int
    offset: int
    size: int
    link: int


class _Reader:
    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path, self.data = path, data
        if data[:4] != b"\x7fELF":
            raise NotElf("no ELF file (it does not begin with 7f 45 4c 46)")
        self.bits = {1: 32, 2: 64}.get(data[4], 0)
        self.order = {1: "<", 2: ">"}.get(data[5], "")
        if not self.bits or not self.order:
            raise NotElf("damaged ELF file: class or byte order out of range")

    def unpack(self, form: str, offset: int) -> tuple[int, ...]:
        return struct.unpack_from(self.order + form, self.data, offset)

    def text(self, offset: int) -> str:
        end = self.data.find(b"\0", offset)
        if offset < 0 or end < 0:
            raise NotElf("damaged ELF file: a name lies outside")
        return self.data[offset:end].decode("utf-8", "replace")

    def decode(self) -> Elf:
        wide = self.bits == 64
        kind, machine = self.unpack("HH", 16)
        program_at, section_at = self.unpack("QQ" if wide else "II", 32 if wide else 28)
        program_size, program_count, section_size, section_count, names_index = self.unpack("HHHHH", 54 if wide else 42)
        segments = [self.segment(program_at + i * program_size, wide) for i in range(program_count)]
        sections = (
            [self.section(section_at + i * section_size, wide) for i in range(section_count)] if section_at else []
        )
        names = [self.text(sections[names_index].offset + s.name_at) for s in sections] if sections else []

        interpreter = None
        dynamic: list[tuple[int, int]] = []
        build_id = None
        loads = [(address, offset, size) for type_, offset, address, size in segments if type_ == 1]
        for type_, offset, _, size in segments:
            if type_ == _PT_INTERP:
                interpreter = self.text(offset)
            elif type_ == _PT_DYNAMIC:
                dynamic = self.dynamic(offset, size, wide)
            elif type_ == _PT_NOTE and build_id is None:
                build_id = self.build_id(offset, size)
        strings_at = self.file_offset(dict(dynamic).get(_DT_STRTAB, 0), loads)
        soname = next((self.text(strings_at + value) for tag, value in dynamic if tag == _DT_SONAME), None)
        needed = tuple(self.text(strings_at + value) for tag, value in dynamic if tag == _DT_NEEDED)

        rpath = next((self.text(strings_at + value) for tag, value in dynamic if tag == _DT_RPATH), "")
        if any(tag == _DT_RUNPATH for tag, _ in dynamic):
            rpath = ""  # which the dynamic linker then ignores
        pie = any(tag == _DT_FLAGS_1 and value & _DF_1_PIE for tag, value in dynamic)
        exported: set[str] = set()
        imported: set[str] = set()
        defined: set[str] = set()
        for section in sections:
            if section.kind in (_SHT_DYNSYM, _SHT_SYMTAB) and section.link < len(sections):
                self.symbols(section, sections[section.link], wide, exported, imported, defined)
        return Elf(
            path=self.path,
            kind="executable"
            if pie
            else {1: "relocatable", 2: "executable", 3: "shared", 4: "core"}.get(kind, "other"),
            bits=self.bits,
            machine=MACHINES.get(machine, f"machine-{machine}"),
            interpreter=interpreter,
            dynamic=bool(dynamic),
            soname=soname,
            build_id=build_id,
            needed=needed,
            versions=self.versions(sections),
            rpath=rpath,
            exported=frozenset(exported),
            private=frozenset(defined - exported),
            imported=frozenset(imported),
            sections=tuple(names),
        )

    def versions(self, sections: list[_Section]) -> dict[str, tuple[str, ...]]:
        """By soname, the versions of its symbols that this file asks for."""
        by_soname: dict[str, tuple[str, ...]] = {}
        for table in sections:
            if table.kind != _SHT_VERSIONS_NEEDED or table.link >= len(sections):
                continue
            names_at, at = sections[table.link].offset, table.offset
            while table.offset <= at < table.offset + table.size:
                _version, count, file_at, first, step = self.unpack("HHIII", at)
                wanted, one = [], at + first
                for _ in range(count):
                    _hash, _flags, _other, name_at, following = self.unpack("IHHII", one)
                    wanted.append(self.text(names_at + name_at))
                    one += following
                by_soname[self.text(names_at + file_at)] = tuple(wanted)
                if step == 0:
                    break
                at += step
        return by_soname

    def segment(self, at: int, wide: bool) -> tuple[int, int, int, int]:
        """(type, file offset, address, size in the file)"""
        if wide:
            type_, _flags, offset, address, _physical, size = self.unpack("IIQQQQ", at)
        else:
            type_, offset, address, _physical, size = self.unpack("IIIII", at)
        return type_, offset, address, size

    def section(self, at: int, wide: bool) -> _Section:
        form = "IIQQQQI" if wide else "IIIIIII"
        name_at, kind, _flags, _address, offset, size, link = self.unpack(form, at)
        return _Section(name_at, kind, offset, size, link)

    def dynamic(self, offset: int, size: int, wide: bool) -> list[tuple[int, int]]:
        step, form = (16, "QQ") if wide else (8, "II")
        entries: list[tuple[int, int]] = []
        for at in range(offset, offset + size, step):
            tag, value = self.unpack(form, at)
            if tag == 0:
                break
            entries.append((tag, value))
        return entries

    @staticmethod
    def file_offset(address: int, loads: list[tuple[int, int, int]]) -> int:
        for start, offset, size in loads:
            if start <= address < start + size:
                return offset + address - start
        return address

    def build_id(self, offset: int, size: int) -> str | None:
        at, end = offset, offset + size
        while at + 12 <= end:
            name_size, value_size, kind = self.unpack("III", at)
            value_at = at + 12 + (name_size + 3) // 4 * 4
            if kind == _NT_GNU_BUILD_ID and self.data[at + 12 : at + 16] == b"GNU\0":
                return self.data[value_at : value_at + value_size].hex()
            at = value_at + (value_size + 3) // 4 * 4
        return None

    def symbols(
        self, table: _Section, strings: _Section, wide: bool, exported: set[str], imported: set[str], defined: set[str]
    ) -> None:
        form, step = ("IBBHQQ", 24) if wide else ("IIIBBH", 16)
        record = struct.Struct(self.order + form)
        text = self.data[strings.offset : strings.offset + strings.size]
        is_dynamic = table.kind == _SHT_DYNSYM
        body = self.data[table.offset : table.offset + table.size // step * step]
        for fields in record.iter_unpack(body):
            if wide:
                name_at, info, other, section, _value, _size = fields
            else:
                name_at, _value, _size, info, other, section = fields
            end = text.find(b"\0", name_at)
            name = text[name_at:end].decode("utf-8", "replace").partition("@")[0]
            if not name:
                continue
            if section == 0:
                if is_dynamic:
                    imported.add(name)
            elif is_dynamic:
                if info >> 4 != 0 and other & 3 in (0, 3):
                    exported.add(name)
            elif info & 15 in (_STT_FUNC, _STT_GNU_IFUNC):
                defined.add(name)
