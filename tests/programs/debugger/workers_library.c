__thread int library_local = -1;
