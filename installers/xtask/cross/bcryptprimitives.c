/* Rust's std takes its random numbers on Windows from bcryptprimitives.dll, which Wine 8 lacks. This one passes the
   call on to the generator that Wine has. For tests under Wine only: it is never shipped. */
#include <windows.h>

BOOLEAN WINAPI SystemFunction036(PVOID buffer, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T length) {
    while (length > 0) {
        ULONG part = length > 0x10000000 ? 0x10000000 : (ULONG)length;
        if (!SystemFunction036(buffer, part)) return FALSE;
        buffer += part;
        length -= part;
    }
    return TRUE;
}
