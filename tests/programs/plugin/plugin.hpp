// What program and plug-in share.
struct Plugin {
    virtual int use(int) = 0;
    virtual ~Plugin() = default;
};
